// What is XORed with what to make a set's parity, and to make lost files again: pure.
//
// xor, n members: containers, continued with zeros to the longest one's size, are cut into n - 1 segments of equal
// length (rounded up to 4 KiB). The parity of member j is the XOR of one segment of every other member i: segment j if
// j < i, else j - 1. So every byte of a container is protected by exactly one other member, and a lost member's
// container and parity can both be made again from the others.
// partner: the parity of member j is the container of the member before it (of the last one for member 0).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kedge/options.hpp"

namespace kedge::redundancy {

/// A set as far as its bytes are concerned.
struct SetShape {
  Scheme scheme = Scheme::xor_;
  std::vector<std::uint64_t> sizes;  ///< of the containers, by position; at least two
};

enum class Part : std::uint8_t { container, parity };

/// `length` bytes at `offset` of a member's container or parity.
struct Input {
  std::uint32_t member = 0;
  Part part = Part::container;
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
  bool operator==(const Input&) const = default;
};

/// `length` bytes at `offset` of a member's container or parity are the XOR of the inputs, each continued with zeros.
struct Stripe {
  std::uint32_t target = 0;
  Part part = Part::parity;
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
  std::vector<Input> inputs;  ///< no input is empty; none is longer than the stripe
  bool operator==(const Stripe&) const = default;
};

/// Which files of a set are there, by position.
struct Presence {
  std::vector<bool> container;
  std::vector<bool> parity;
};

/// Bytes of a member's parity.
[[nodiscard]] std::uint64_t parity_bytes(const SetShape& set, std::uint32_t position);

/// One stripe for each member's parity, by position.
[[nodiscard]] std::vector<Stripe> encode_stripes(const SetShape& set);

/// True if every missing container can be made again: for xor iff at most one member misses its container or its
/// parity; for partner iff the member after each missing container has its parity.
[[nodiscard]] bool can_decode(Scheme scheme, const Presence& present);

/// How the missing containers are made again, and then the missing parity. Stripes of one target follow each other by
/// offset and cover its file. A rebuilt container may be an input of a later stripe. Only if can_decode.
[[nodiscard]] std::vector<Stripe> decode_stripes(const SetShape& set, const Presence& present);

}  // namespace kedge::redundancy
