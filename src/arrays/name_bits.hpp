// Sets of names that are small enough for an all-reduce. Pure.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "base/hash.hpp"

namespace kedge::arrays {

/// A set of names, one bit of 512 for each, by its hash: a name whose bit is clear is not in it, one whose bit is set
/// may be.
using NameBits = std::array<std::uint64_t, 8>;

inline void add_name(NameBits& names, std::string_view name) noexcept {
  const std::uint64_t hash = fnv1a(name);
  names[hash / 64 % names.size()] |= std::uint64_t{1} << (hash % 64);
}
[[nodiscard]] inline bool may_have(const NameBits& names, std::string_view name) noexcept {
  const std::uint64_t hash = fnv1a(name);
  return (names[hash / 64 % names.size()] >> (hash % 64) & 1U) != 0;
}

}  // namespace kedge::arrays
