#include "fs/stream_copy.hpp"

#include <algorithm>
#include <cstring>

#include "base/checksum.hpp"

#ifdef __SSE2__
#include <immintrin.h>
#endif

namespace kedge::fs {
namespace {

// The checksum fetches a piece into the first-level cache, the copy finds it there. Measured from 1 KiB to 4 MiB.
constexpr std::size_t kPieceBytes = std::size_t{8} << 10U;

#ifdef __SSE2__
constexpr std::size_t kLineBytes = 64;

/// Whole cache lines, `to` aligned to one. Orders nothing by itself.
void stream_lines(std::byte* to, const std::byte* from, std::size_t lines) noexcept {
  for (; lines != 0; --lines, to += kLineBytes, from += kLineBytes) {
    auto* out = reinterpret_cast<__m128i*>(to);               // NOLINT(*-reinterpret-cast)
    const auto* in = reinterpret_cast<const __m128i*>(from);  // NOLINT(*-reinterpret-cast)
    const __m128i a = _mm_loadu_si128(in);
    const __m128i b = _mm_loadu_si128(in + 1);
    const __m128i c = _mm_loadu_si128(in + 2);
    const __m128i d = _mm_loadu_si128(in + 3);
    _mm_stream_si128(out, a);
    _mm_stream_si128(out + 1, b);
    _mm_stream_si128(out + 2, c);
    _mm_stream_si128(out + 3, d);
  }
}

void copy(std::byte* to, std::span<const std::byte> from) noexcept {
  if (from.size() < kPieceBytes / 2) {
    if (!from.empty()) std::memcpy(to, from.data(), from.size());
    return;
  }
  const std::size_t beyond_line = reinterpret_cast<std::uintptr_t>(to) % kLineBytes;  // NOLINT(*-reinterpret-cast)
  const std::size_t head = beyond_line == 0 ? 0 : kLineBytes - beyond_line;
  const std::size_t lines = (from.size() - head) / kLineBytes;
  const std::size_t tail = head + lines * kLineBytes;
  std::memcpy(to, from.data(), head);
  stream_lines(to + head, from.data() + head, lines);
  std::memcpy(to + tail, from.data() + tail, from.size() - tail);
}

/// Streamed bytes are ordered before whatever this thread does next, such as telling another one.
void order() noexcept { _mm_sfence(); }
#else
void copy(std::byte* to, std::span<const std::byte> from) noexcept {
  if (!from.empty()) std::memcpy(to, from.data(), from.size());
}
void order() noexcept {}
#endif

}  // namespace

std::uint32_t stream_copy(std::byte* to, std::span<const std::byte> from, std::uint32_t crc) noexcept {
  for (std::size_t at = 0; at < from.size(); at += kPieceBytes) {
    const auto piece = from.subspan(at, std::min(kPieceBytes, from.size() - at));
    crc = crc32c(piece, crc);
    copy(to + at, piece);
  }
  order();
  return crc;
}

}  // namespace kedge::fs
