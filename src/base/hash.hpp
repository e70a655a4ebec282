// Hashes that are the same in every process of a job. Not for what somebody may choose to our harm.
#pragma once

#include <cstdint>
#include <string_view>

namespace kedge {

/// FNV-1a, 64 bit (Fowler, Noll, Vo).
[[nodiscard]] constexpr std::uint64_t fnv1a(std::string_view text) noexcept {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return hash;
}

}  // namespace kedge
