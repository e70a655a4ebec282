// Executes stripes over a communicator: members send inputs to each stripe's target, which adds them and writes the
// sum.
//
// All members process the same sequence of pieces. After a failure a member continues with zeros, so that no member
// waits for it, and reports the failure at the end: the caller votes on it before sealing.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "comm/group.hpp"
#include "fs/file_system.hpp"
#include "kedge/error.hpp"
#include "redundancy/plan_stripes.hpp"

namespace kedge::redundancy {

/// A file that this member reads or writes in the exchange.
struct MemberFile {
  fs::ByteAccess* bytes = nullptr;    ///< null if this member does not use it, or cannot
  std::span<const std::byte> mapped;  ///< the whole file, if messages may be sent from it; else empty
  std::uint64_t offset = 0;           ///< offset of the part in the file: parity follows its header
};

/// A redundancy set from this member's point of view.
struct Membership {
  std::vector<int> ranks;          ///< ranks in the communicator, by position
  std::uint32_t own_position = 0;  ///< this process's position
};

/// A member whose files this process has. After a restart on fewer ranks, one process may have those of several
/// members.
struct LocalMember {
  std::uint32_t position = 0;
  MemberFile container = {};
  MemberFile parity = {};
};

/// CRC32C of each stripe's bytes as one member wrote and read them; 0 where it had no part.
struct StripeChecksums {
  std::vector<std::uint32_t> written;  ///< checksums of the stripes that the member is the target of
  std::vector<std::uint32_t> read;     ///< checksums of the member's inputs of each stripe
};

/// Result of an exchange.
struct ExchangeResult {
  std::optional<Failure> failure;                 ///< the first on this process
  std::vector<StripeChecksums> member_checksums;  ///< checksums of the local members, in their order
  std::uint64_t sent_bytes = 0;                   ///< bytes sent to other processes
};

/// The way of inputs to their stripe's target.
enum class Route : std::uint8_t {
  direct,  ///< each member sends directly to it
  chain,   ///< each member adds its own to the sum and sends it on: the target receives each byte once
};

/// Returns the way by which the busiest member receives least: directly if there are at least as many targets as inputs
/// of a stripe, as in all encoding, since each member of a chain receives a sum for every target; by a chain if there
/// are fewer. Measured to be the faster one, too. A chain needs a process for each member: `ranks` are theirs by
/// position; empty: each has its own.
[[nodiscard]] Route route_for(std::span<const Stripe> stripes, std::span<const int> ranks = {});

/// Use of the network by an exchange; equal on all members of a set.
struct ExchangeSettings {
  Route route = Route::direct;
  PieceSettings pieces;
};

/// COLLECTIVE over the processes that have the set's members. Executes the stripes. `ranks` are theirs in the group, by
/// position, and `local` has every position of this process's rank. The group's timeout is for each wait, not for the
/// whole exchange. A member has at most one input in a stripe, and no stripe may need the result of another one. Throws
/// only what ends communication (comm::ends_communication); other failures are in the result. After a throw, messages
/// may still be sent from `mapped`: it must then stay mapped until the process ends.
[[nodiscard]] ExchangeResult exchange_stripes(const comm::Group& group, std::span<const int> ranks,
                                              std::span<const LocalMember> local, std::span<const Stripe> stripes,
                                              const ExchangeSettings& settings);

/// CRC32C of the bytes written to a member's file, whose stripes must cover it in the order of offsets.
[[nodiscard]] std::uint32_t written_crc(std::uint32_t member, MemberPart part, std::span<const Stripe> stripes,
                                        const StripeChecksums& checksums);

/// Recorded size and checksum of a file's part.
struct RecordedPart {
  std::uint64_t size_bytes = 0;
  std::uint32_t crc = 0;
};

/// Whether a member's part has its recorded CRC32C. Uses the CRCs of the segments that stripes read, and reads the
/// others now. Where a shorter read overlaps a longer one it is not compared: its bytes went into a container, which
/// has its own checksum. Throws io, corrupt.
[[nodiscard]] bool matches_recorded(std::uint32_t member, MemberPart part, const RecordedPart& recorded,
                                    std::span<const Stripe> stripes, const StripeChecksums& checksums,
                                    const MemberFile& file);

}  // namespace kedge::redundancy
