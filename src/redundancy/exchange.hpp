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

/// A member whose files this process has. One process may have those of several members: after a restart on fewer
/// ranks.
struct LocalMember {
  std::uint32_t position = 0;
  MemberFile container = {};
  MemberFile parity = {};
};

/// CRC32C of each stripe's bytes as one member wrote and read them; 0 where it had no part.
struct StripeChecksums {
  std::vector<std::uint32_t> written;  ///< of each stripe that the member is the target of
  std::vector<std::uint32_t> read;     ///< of the member's input of each stripe
};

/// Result of an exchange.
struct ExchangeResult {
  std::optional<Failure> failure;        ///< the first on this process
  std::vector<StripeChecksums> members;  ///< in the order of the local members
  std::uint64_t sent_bytes = 0;          ///< to other processes
};

/// Which way inputs take to the target of their stripe.
enum class Route : std::uint8_t {
  direct,  ///< each straight to it
  chain,   ///< from member to member, each of which adds its own: a lone target receives each byte once
};

/// The way by which the busiest member has least to receive: straight to it if there are as many targets as inputs of
/// a stripe or more, as in all encoding, since each of a chain receives a sum for every target; by a chain if there are
/// fewer. Measured to be the faster one, too. A chain needs a process for each member: `ranks`
/// are theirs by position; empty: each has its own.
[[nodiscard]] Route route_for(std::span<const Stripe> stripes, std::span<const int> ranks = {});

/// How an exchange uses the network. The same on all members of a set.
struct ExchangeSettings {
  Route route = Route::direct;
  PieceSettings pieces;
};

/// COLLECTIVE over the processes that have the set's members. `ranks` are theirs in the group, by position, and
/// `local` has every position at which this process's rank is. The group's timeout is for each wait, not for all of the
/// exchange. A member has one input in a stripe at most, and no stripe may need what another one makes. Throws only
/// what ends communication (comm::ends_communication); other failures are in the result. After a throw, messages may
/// still be sent from `mapped`: it must then stay mapped until the process ends.
[[nodiscard]] ExchangeResult exchange(const comm::Group& group, std::span<const int> ranks,
                                      std::span<const LocalMember> local, std::span<const Stripe> stripes,
                                      const ExchangeSettings& settings);

/// CRC32C of the bytes written to a member's file: its stripes must cover the file in the order of their offsets.
[[nodiscard]] std::uint32_t crc_written(std::uint32_t member, Part part, std::span<const Stripe> stripes,
                                        const StripeChecksums& checksums);

/// A file's part as it is recorded.
struct Recorded {
  std::uint64_t size_bytes = 0;
  std::uint32_t crc = 0;
};

/// True if a member's part, as the stripes read it, has the CRC32C that is recorded for all of it: what no stripe read
/// is read now. A shorter read beside a longer one of the same place is not compared: it went into a container, whose
/// own checksum will tell. Throws io, corrupt.
[[nodiscard]] bool matches_recorded(std::uint32_t member, Part part, const Recorded& recorded,
                                    std::span<const Stripe> stripes, const StripeChecksums& checksums,
                                    const MemberFile& file);

}  // namespace kedge::redundancy
