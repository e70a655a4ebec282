// Asks memory for the bytes that come next while the processor works on those before.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

namespace kedge {

/// Bytes that are worked on at a time. A processor by itself prefetches no further than to the end of a page.
inline constexpr std::size_t kPrefetchBytes = std::size_t{4} << 10U;
/// How far ahead of that memory is asked for more: measured in decisions 009 and 039.
inline constexpr std::size_t kPrefetchDistanceBytes = std::size_t{2} << 10U;
/// Bytes of a cache line.
inline constexpr std::size_t kLineBytes = 64;

/// Local. Starts to bring as many bytes into the nearest cache as are worked on from `at` on, beginning a little
/// later, and waits for nothing.
inline void prefetch(std::span<const std::byte> bytes, std::size_t at) noexcept {
  const std::size_t end = std::min(bytes.size(), at + kPrefetchDistanceBytes + kPrefetchBytes);
  for (std::size_t line = at + kPrefetchDistanceBytes; line < end; line += kLineBytes)
    __builtin_prefetch(bytes.data() + line);
}

}  // namespace kedge
