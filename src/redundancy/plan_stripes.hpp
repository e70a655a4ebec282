// Pure. Stripes: the sums that make a set's parity and rebuild lost files.
//
// rs, n members, m parities: containers, padded with zeros to the longest one's size, are cut into n - m segments of
// equal length (rounded up to 4 KiB). In stripe s of n, members s to s + m - 1 have the parity segments, and the
// members after them (all modulo n) the n - m data segments. A container's segments belong, in order, to the stripes in
// which its member has data; segment j of member p's parity is parity segment j of stripe p - j. Exactly m other
// members thus protect each byte of a container, and any n - m segments of a stripe determine the others. xor: rs with
// m = 1 and plain XOR as parity. partner: the parity of member j is a copy of the container of member j - 1 (of the
// last member for j = 0).
#pragma once

#include <cstdint>
#include <vector>

#include "kedge/options.hpp"

namespace kedge::redundancy {

/// A set's sizes.
struct SetShape {
  Scheme scheme = Scheme::xor_;
  std::vector<std::uint64_t> sizes;  ///< sizes of the containers, by position; more than `parity_count` of them
  std::uint32_t parity_count = 1;    ///< per stripe: 2 to 4 for rs, otherwise 1
};

enum class MemberPart : std::uint8_t { container, parity };

/// `length` bytes at `offset` of a member's container or parity, with a coefficient in GF(2^8).
struct StripeInput {
  std::uint32_t member = 0;
  MemberPart part = MemberPart::container;
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
  std::uint8_t coefficient = 1;
  bool operator==(const StripeInput&) const = default;
};

/// `length` bytes at `offset` of a member's container or parity, which are the sum of the zero-padded inputs.
struct Stripe {
  std::uint32_t target = 0;
  MemberPart part = MemberPart::parity;
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
  std::vector<StripeInput> inputs;  ///< none is empty or longer than the stripe
  bool operator==(const Stripe&) const = default;
};

/// Which files of a set exist, by position.
struct PresentFiles {
  std::vector<bool> container;
  std::vector<bool> parity;
};

/// Size of a member's parity.
[[nodiscard]] std::uint64_t parity_bytes(const SetShape& set, std::uint32_t position);

/// One stripe for each segment of each member's parity: the first segment of every member, then the second, and so on.
/// No stripe depends on another.
[[nodiscard]] std::vector<Stripe> encode_stripes(const SetShape& set);

/// Whether every missing container can be rebuilt: for xor and rs, iff at most `parities` members lack container or
/// parity; for partner, iff the member after each missing container has its parity.
[[nodiscard]] bool can_decode(Scheme scheme, std::uint32_t parities, const PresentFiles& present);

/// Stripes that rebuild missing containers and parity; requires can_decode(). The stripes of a file cover it in the
/// order of offsets; several files are interleaved, with rotating first inputs. No stripe depends on another.
[[nodiscard]] std::vector<Stripe> decode_stripes(const SetShape& set, const PresentFiles& present);

/// Sizes of the messages: tests choose others.
struct PieceSettings {
  std::uint64_t bytes = 0;  ///< size of a piece; 0 is automatic
  std::uint32_t depth = 4;  ///< steps in progress at once
};

/// Limit of one member's message memory, unless the user sets piece_bytes.
inline constexpr std::uint64_t kExchangeBufferBytes = std::uint64_t{13} << 20U;
/// Limit for any piece_bytes: in large sets, large pieces would need more memory than exists.
inline constexpr std::uint64_t kBufferBytesMax = std::uint64_t{1} << 30U;
inline constexpr std::uint64_t kPieceBytesMin = std::uint64_t{64} << 10U;
inline constexpr std::uint64_t kPieceBytesMax = std::uint64_t{1} << 20U;

/// Piece size, a multiple of 4 KiB: the user's, as far as kBufferBytesMax allows, or one that keeps `buffers` per step
/// in progress, plus two, within kExchangeBufferBytes, but at least kPieceBytesMin.
[[nodiscard]] std::uint64_t piece_bytes(std::uint64_t buffers, const PieceSettings& settings);

/// `length` bytes at `begin`, relative to a stripe or an input.
struct Piece {
  std::uint64_t begin = 0;
  std::uint64_t length = 0;
};

/// Piece `number` of `total` bytes; empty beyond the end.
[[nodiscard]] constexpr Piece piece_of(std::uint64_t number, std::uint64_t piece_bytes, std::uint64_t total) noexcept {
  const std::uint64_t begin = number * piece_bytes;
  if (begin >= total) return {total, 0};
  return {begin, total - begin < piece_bytes ? total - begin : piece_bytes};
}

}  // namespace kedge::redundancy
