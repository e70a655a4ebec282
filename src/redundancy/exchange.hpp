// Runs stripes over a communicator: inputs travel to the target, which adds them up and writes the sum.
//
// All members go through the same sequence of pieces. A member that fails goes on with zeros, so that nobody waits for
// it, and reports the failure at the end: the caller votes on it before anything is sealed.
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

/// One file of this member, as the exchange reads or writes it.
struct MemberFile {
  fs::ByteAccess* bytes = nullptr;    ///< null if this member neither reads nor writes it, or cannot
  std::span<const std::byte> mapped;  ///< the whole file, if it may be sent from where it lies; else empty
  std::uint64_t begin = 0;            ///< where the part begins in the file: parity lies behind its header
};

/// The set as this member sees it.
struct Membership {
  std::vector<int> ranks;  ///< of the communicator, by position
  std::uint32_t me = 0;    ///< this process's position
};

/// Result of an exchange. Vectors are as long as the stripes; 0 where this member had no part.
struct ExchangeResult {
  std::optional<Failure> failure;      ///< the first on this member
  std::vector<std::uint32_t> written;  ///< CRC32C of each stripe that this member is the target of
  std::vector<std::uint32_t> read;     ///< CRC32C of this member's input of each stripe
  std::uint64_t sent_bytes = 0;
};

/// Which way inputs take to the target of their stripe.
enum class Route : std::uint8_t {
  direct,  ///< each straight to it
  chain,   ///< from member to member, each of which adds its own: a lone target receives each byte once
};

/// The way by which the busiest member has least to receive: straight to it if there are as many targets as inputs of
/// a stripe or more, as in all encoding, since each of a chain receives a sum for every target; by a chain if there are
/// fewer. Measured to be the faster one, too.
[[nodiscard]] Route route_for(std::span<const Stripe> stripes);

/// How an exchange uses the network. The same on all members of a set.
struct ExchangeSettings {
  Route route = Route::direct;
  PieceSettings pieces;
};

/// COLLECTIVE over the set's members, which are ranks of the group; its timeout is for each wait, not for all of it. A
/// member has one input in a stripe at most, and no stripe may need what another one makes. Throws only what ends
/// communication (comm::ends_communication); what else goes wrong is in the result. After that messages may still be
/// sent from `mapped`: it must then stay mapped until the process ends.
[[nodiscard]] ExchangeResult exchange(const comm::Group& group, const Membership& membership,
                                      std::span<const Stripe> stripes, const MemberFile& container,
                                      const MemberFile& parity, const ExchangeSettings& traffic);

/// CRC32C of what was written to a member's file: its stripes must cover the file in the order of their offsets.
[[nodiscard]] std::uint32_t crc_written(std::uint32_t member, Part part, std::span<const Stripe> stripes,
                                        const ExchangeResult& passed);

/// A file's part as it is recorded.
struct Recorded {
  std::uint64_t size_bytes = 0;
  std::uint32_t crc = 0;
};

/// True if a member's part, as the stripes read it, has the CRC32C that is recorded for all of it: what no stripe read
/// is read now. A shorter read beside a longer one of the same place is not compared: it went into a container, whose
/// own checksum will tell. Throws io, corrupt.
[[nodiscard]] bool matches_recorded(std::uint32_t member, Part part, const Recorded& recorded,
                                    std::span<const Stripe> stripes, const ExchangeResult& passed,
                                    const MemberFile& file);

}  // namespace kedge::redundancy
