// Executes stripes over a communicator: members send inputs to each stripe's target, which adds them and writes the
// sum.
//
// All members process the same sequence of pieces. After a failure a member continues with zeros, so that nobody
// waits for it, and reports the failure at the end: the caller votes on it before sealing.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "comm/group.hpp"
#include "fs/file_system.hpp"
#include "kedge/error.hpp"
#include "redundancy/plan_pieces.hpp"
#include "redundancy/plan_stripes.hpp"

namespace kedge::redundancy {

/// A file that this member reads or writes in the exchange.
struct MemberFile {
  fs::ByteAccess* bytes = nullptr;    ///< null if this member does not use it, or cannot
  std::span<const std::byte> mapped;  ///< the whole file, if messages may be sent from it; else empty
  std::uint64_t begin = 0;            ///< offset of the part in the file: parity follows its header
};

/// A redundancy set from this member's point of view.
struct Membership {
  std::vector<int> ranks;  ///< in the communicator, by position
  std::uint32_t me = 0;    ///< this process's position
};

/// Vectors have an element per stripe, 0 where this member was not involved.
struct ExchangeResult {
  std::optional<Failure> failure;      ///< the first one on this member
  std::vector<std::uint32_t> written;  ///< CRC32C of each stripe that this member received as target
  std::vector<std::uint32_t> read;     ///< CRC32C of this member's input to each stripe
  std::uint64_t sent_bytes = 0;
};

/// How inputs reach their stripe's target.
enum class Route : std::uint8_t {
  direct,  ///< each member sends directly to it
  chain,   ///< each member adds its own to the sum and sends it on: the target receives each byte once
};

/// The route with the smallest maximum of received bytes: direct if there are at least as many targets as inputs per
/// stripe, as in all encoding, because a chain passes each target's sum through every member; otherwise chain.
/// Measurements agree.
[[nodiscard]] Route route_for(std::span<const Stripe> stripes);

/// How an exchange uses the network; equal on all members of a set.
struct ExchangeSettings {
  Route route = Route::direct;
  PieceSettings pieces;
};

/// COLLECTIVE over the set's members, which are ranks of `group`; its timeout applies to each wait. A member has at
/// most one input per stripe, and no stripe depends on another. Throws only what ends communication
/// (comm::ends_communication); other failures are in the result. After such a throw, messages may still be sent from
/// `mapped`, which must stay mapped until the process ends.
[[nodiscard]] ExchangeResult exchange(const comm::Group& group, const Membership& membership,
                                      std::span<const Stripe> stripes, const MemberFile& container,
                                      const MemberFile& parity, const ExchangeSettings& traffic);

/// CRC32C of the bytes written to a member's file, whose stripes must cover it in the order of offsets.
[[nodiscard]] std::uint32_t crc_written(std::uint32_t member, Part part, std::span<const Stripe> stripes,
                                        const ExchangeResult& passed);

/// Recorded size and checksum of a file's part.
struct Recorded {
  std::uint64_t size_bytes = 0;
  std::uint32_t crc = 0;
};

/// Whether a member's part has its recorded CRC32C. Uses the CRCs of the segments that stripes read, and reads the
/// others now. Where a shorter read overlaps a longer one it is not compared: its bytes went into a container, which
/// has its own checksum. Throws io, corrupt.
[[nodiscard]] bool matches_recorded(std::uint32_t member, Part part, const Recorded& recorded,
                                    std::span<const Stripe> stripes, const ExchangeResult& passed,
                                    const MemberFile& file);

}  // namespace kedge::redundancy
