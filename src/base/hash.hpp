// Hashes that are the same in every process of a job. Not safe against chosen input.
#pragma once

#include <cstdint>
#include <string_view>

namespace kedge {

/// Returns the FNV-1a hash of 64 bits (Fowler, Noll, Vo).
[[nodiscard]] constexpr std::uint64_t fnv1a(std::string_view text) noexcept {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return hash;
}

}  // namespace kedge
