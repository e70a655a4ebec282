// Stripes: the sums that make a set's parity, and rebuild lost files. Pure.
//
// rs, n members, m parities: containers, continued with zeros to the longest one's size, are cut into n - m segments of
// equal length (rounded up to 4 KiB). Stripe s of n: its m parity segments lie with members s to s + m - 1, its n - m
// data segments with the members after them (all modulo n). A container's segments belong, in order, to the stripes
// that its member has data in; segment j of member p's parity is parity segment j of stripe p - j. So every byte of a
// container is protected by exactly m other members, and of each stripe any n - m segments make the others.
// xor is the same with m = 1, where parity is plain XOR.
// partner: the parity of member j is the container of the member before it (of the last one for member 0).
#pragma once

#include <cstdint>
#include <vector>

#include "kedge/options.hpp"

namespace kedge::redundancy {

/// A set as far as its bytes are concerned.
struct SetShape {
  Scheme scheme = Scheme::xor_;
  std::vector<std::uint64_t> sizes;  ///< of the containers, by position; more than `parities`
  std::uint32_t parities = 1;        ///< of a stripe: for rs 2 to 4, for others 1
};

enum class Part : std::uint8_t { container, parity };

/// `length` bytes at `offset` of a member's container or parity, times a number of GF(2^8).
struct Input {
  std::uint32_t member = 0;
  Part part = Part::container;
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
  std::uint8_t coefficient = 1;
  bool operator==(const Input&) const = default;
};

/// `length` bytes at `offset` of a member's container or parity are the sum of the inputs, each continued with zeros.
struct Stripe {
  std::uint32_t target = 0;
  Part part = Part::parity;
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
  std::vector<Input> inputs;  ///< no input is empty; none is longer than the stripe
  bool operator==(const Stripe&) const = default;
};

/// Which files of a set are there, by position.
struct PresentFiles {
  std::vector<bool> container;
  std::vector<bool> parity;
};

/// Bytes of a member's parity.
[[nodiscard]] std::uint64_t parity_bytes(const SetShape& set, std::uint32_t position);

/// One stripe for each segment of each member's parity: first that of every member, then the next. No stripe needs
/// what another one makes.
[[nodiscard]] std::vector<Stripe> encode_stripes(const SetShape& set);

/// True if every missing container can be rebuilt: for xor and rs iff at most `parities` members miss their
/// container or their parity; for partner iff the member after each missing container has its parity.
[[nodiscard]] bool can_decode(Scheme scheme, std::uint32_t parities, const PresentFiles& present);

/// How the missing containers and the missing parity are rebuilt. Stripes of one file follow each other by offset
/// and cover it; those of several files take turns, and so do the inputs that come first in a stripe. No stripe needs
/// what another one makes. Only if can_decode.
[[nodiscard]] std::vector<Stripe> decode_stripes(const SetShape& set, const PresentFiles& present);

}  // namespace kedge::redundancy
