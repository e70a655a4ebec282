#include "fs/stream_copy.hpp"

#include <algorithm>
#include <cstring>

#include "base/checksum.hpp"
#include "base/fetch_ahead.hpp"

#ifdef __x86_64__
#include <immintrin.h>
#endif

namespace kedge::fs {
namespace {

#ifdef __x86_64__
constexpr std::size_t kLineBytes = 64;

// Whole cache lines, `to` aligned to one. They order nothing by themselves.

void stream_lines_by_16(std::byte* to, const std::byte* from, std::size_t lines) noexcept {
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

__attribute__((target("avx2"))) void stream_lines_by_32(std::byte* to, const std::byte* from,
                                                        std::size_t lines) noexcept {
  for (; lines != 0; --lines, to += kLineBytes, from += kLineBytes) {
    auto* out = reinterpret_cast<__m256i*>(to);               // NOLINT(*-reinterpret-cast)
    const auto* in = reinterpret_cast<const __m256i*>(from);  // NOLINT(*-reinterpret-cast)
    const __m256i a = _mm256_loadu_si256(in);
    const __m256i b = _mm256_loadu_si256(in + 1);
    _mm256_stream_si256(out, a);
    _mm256_stream_si256(out + 1, b);
  }
}

void copy(std::byte* to, std::span<const std::byte> from, StoreWidth width) noexcept {
  if (from.size() < kFetchBytes / 2) {
    if (!from.empty()) std::memcpy(to, from.data(), from.size());
    return;
  }
  const std::size_t beyond_line = reinterpret_cast<std::uintptr_t>(to) % kLineBytes;  // NOLINT(*-reinterpret-cast)
  const std::size_t head = beyond_line == 0 ? 0 : kLineBytes - beyond_line;
  const std::size_t lines = (from.size() - head) / kLineBytes;
  const std::size_t tail = head + lines * kLineBytes;
  std::memcpy(to, from.data(), head);
  const auto stream_lines = width == StoreWidth::bytes_32 ? stream_lines_by_32 : stream_lines_by_16;
  stream_lines(to + head, from.data() + head, lines);
  std::memcpy(to + tail, from.data() + tail, from.size() - tail);
}

/// Streamed bytes are ordered before whatever this thread does next, such as telling another one.
void order() noexcept { _mm_sfence(); }
#else
void copy(std::byte* to, std::span<const std::byte> from, StoreWidth /*width*/) noexcept {
  if (!from.empty()) std::memcpy(to, from.data(), from.size());
}
void order() noexcept {}
#endif

}  // namespace

// Processors differ in how many lines they can hold that are only partly written: some of Intel's copy a third faster
// with two stores to a line than with four (decision 009).
StoreWidth widest_stores() noexcept {
#ifdef __x86_64__
  if (__builtin_cpu_supports("avx2") != 0) return StoreWidth::bytes_32;
#endif
  return StoreWidth::bytes_16;
}

// The checksum finds a piece in the first-level cache, which it was asked for ahead; so does the copy.
std::uint32_t stream_copy(std::byte* to, std::span<const std::byte> from, std::uint32_t crc,
                          StoreWidth width) noexcept {
  for (std::size_t at = 0; at < from.size(); at += kFetchBytes) {
    fetch_ahead(from, at);
    const auto piece = from.subspan(at, std::min(kFetchBytes, from.size() - at));
    crc = crc32c(piece, crc);
    copy(to + at, piece, width);
  }
  order();
  return crc;
}

}  // namespace kedge::fs
