// Runs stripes over a communicator: members send their inputs straight to the target, which XORs and writes them.
//
// All members go through the same sequence of pieces. A member that fails goes on with zeros, so that nobody waits for
// it, and reports the failure at the end: the caller votes on it before anything is sealed.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "fs/file_system.hpp"
#include "kedge/communicator.hpp"
#include "kedge/error.hpp"
#include "redundancy/plan_stripes.hpp"

namespace kedge::redundancy {

/// One file of this member, as the exchange reads or writes it.
struct PartFile {
  fs::ByteAccess* bytes = nullptr;    ///< null if this member neither reads nor writes it, or cannot
  std::span<const std::byte> mapped;  ///< the whole file, if it may be sent from where it lies; else empty
  std::uint64_t begin = 0;            ///< where the part begins in the file: parity lies behind its header
};

/// The set as this member sees it.
struct Membership {
  std::vector<int> ranks;  ///< of the communicator, by position
  std::uint32_t me = 0;    ///< this process's position
};

/// What passed. Vectors are as long as the stripes; 0 where this member had no part.
struct Exchanged {
  std::optional<Failure> failure;      ///< the first on this member
  std::vector<std::uint32_t> written;  ///< CRC32C of each stripe that this member is the target of
  std::vector<std::uint32_t> read;     ///< CRC32C of this member's input of each stripe
  std::uint64_t sent_bytes = 0;
};

/// Bytes that one member needs for messages under way.
inline constexpr std::uint64_t kExchangeBufferBytes = std::uint64_t{16} << 20U;

/// COLLECTIVE over the set's members. `patience` is for each wait, not for all of it. A member has one input in a
/// stripe at most. Throws Error{timeout} only; what else goes wrong is in the result. After a timeout messages may
/// still be sent from `mapped`: it must then stay mapped until the process ends.
[[nodiscard]] Exchanged exchange(Communicator& communicator, const Membership& membership,
                                 std::span<const Stripe> stripes, const PartFile& container, const PartFile& parity,
                                 std::chrono::duration<double> patience);

/// CRC32C of a member's whole container as it was read; nothing unless every byte of it was read exactly once.
[[nodiscard]] std::optional<std::uint32_t> crc_of_container(std::uint32_t member, std::uint64_t size_bytes,
                                                            std::span<const Stripe> stripes, const Exchanged& passed);

}  // namespace kedge::redundancy
