// Every channel that Kedge sends messages on. No two steps that may be under way at the same time share one.
#pragma once

namespace kedge::comm {

/// Channels below this are for whoever sends messages from rank to rank; those from here on for collective operations.
inline constexpr int kUserChannels = 1024;

/// Uses of the channels below kUserChannels.
namespace channel {
inline constexpr int kRelocate = 3;         ///< sealed files on their way to the processes that own them now
inline constexpr int kManifestCopy = 4;     ///< rank 0's manifest on its way to a second failure domain
inline constexpr int kRedundancySet = 512;  ///< pieces that members of a redundancy set send each other
}  // namespace channel

inline constexpr int kReduceChannel = kUserChannels;
inline constexpr int kBroadcastChannel = kUserChannels + 1;
inline constexpr int kExchangeChannel = kUserChannels + 2;
inline constexpr int kExchangeChannelOdd = kUserChannels + 3;  ///< that over MPI alternates between two
inline constexpr int kScanChannel = kUserChannels + 4;         ///< of exclusive_scan
inline constexpr int kMembersChannel = kUserChannels + 5;      ///< of find_topology
inline constexpr int kLeaveChannel = kUserChannels + 6;        ///< of a rank that fails during a call
inline constexpr int kDepartChannel = kUserChannels + 7;       ///< of a rank that makes no more calls
inline constexpr int kChannelLimit = kUserChannels + 8;

}  // namespace kedge::comm
