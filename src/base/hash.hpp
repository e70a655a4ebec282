// Hashes that are the same in every process of a job. Not safe against chosen input.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace kedge {

inline constexpr std::uint64_t kFnvBasis = 0xcbf29ce484222325U;

/// Returns the FNV-1a hash of 64 bits (Fowler, Noll, Vo). `hash` is that of the preceding bytes.
[[nodiscard]] constexpr std::uint64_t fnv1a(std::string_view text, std::uint64_t hash = kFnvBasis) noexcept {
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return hash;
}
[[nodiscard]] constexpr std::uint64_t fnv1a(std::span<const std::byte> bytes, std::uint64_t hash = kFnvBasis) noexcept {
  for (const std::byte byte : bytes) hash = (hash ^ std::to_integer<std::uint64_t>(byte)) * 0x100000001b3U;
  return hash;
}

}  // namespace kedge
