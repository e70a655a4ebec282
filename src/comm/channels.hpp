// Every channel that Kedge sends messages on. Steps that may run at the same time use different ones.
#pragma once

namespace kedge::comm {

/// First channel of collective operations; lower ones are for messages from rank to rank.
inline constexpr int kFirstInternalChannel = 1024;

/// Uses of the channels below kFirstInternalChannel.
namespace channel {
inline constexpr int kRelocate = 3;         ///< moves sealed files to the processes that own them now
inline constexpr int kManifestCopy = 4;     ///< copies rank 0's manifest to a second failure domain
inline constexpr int kRedundancySet = 512;  ///< pieces that members of a redundancy set send each other
}  // namespace channel

inline constexpr int kReduceChannel = kFirstInternalChannel;
inline constexpr int kBroadcastChannel = kFirstInternalChannel + 1;
inline constexpr int kExchangeChannel = kFirstInternalChannel + 2;
inline constexpr int kExchangeChannelOdd =
    kFirstInternalChannel + 3;                                  ///< over MPI, exchanges alternate between two channels
inline constexpr int kScanChannel = kFirstInternalChannel + 4;  ///< exclusive_scan
inline constexpr int kMembersChannel = kFirstInternalChannel + 5;  ///< find_topology
inline constexpr int kLeaveChannel = kFirstInternalChannel + 6;    ///< a rank fails during a call
inline constexpr int kDepartChannel = kFirstInternalChannel + 7;   ///< a rank makes no more calls
inline constexpr int kChannelLimit = kFirstInternalChannel + 8;

}  // namespace kedge::comm
