// For any processor: ISA-L computes each piece's checksum, which brings the piece into the nearest cache for the copy.
#include <algorithm>
#include <array>
#include <cstring>

#include "checksum/crc32c.hpp"
#include "checksum/kernels.hpp"
#include "checksum/prefetch.hpp"

namespace kedge::checksum {
namespace {

std::uint32_t copy_plainly(std::byte* to, Sources sources, std::size_t size, std::uint32_t crc) noexcept {
  const std::span<const std::byte> from(sources.front(), size);
  for (std::size_t at = 0; at < size; at += kPrefetchBytes) {
    prefetch(from, at);
    const auto piece = from.subspan(at, std::min(kPrefetchBytes, size - at));
    std::memcpy(to + at, piece.data(), piece.size());
    crc = crc32c({to + at, piece.size()}, crc);  // of what was copied, since another thread may have changed `from`
  }
  return crc;
}

std::uint32_t combine_plainly(std::byte* to, Sources from, std::size_t size, std::uint32_t crc) noexcept {
  std::array<std::byte, kPrefetchBytes> sum;  // NOLINT(*-member-init): filled below; `to` may be one of the sources
  for (std::size_t at = 0; at < size; at += kPrefetchBytes) {
    const std::size_t length = std::min(kPrefetchBytes, size - at);
    std::memcpy(sum.data(), from.front() + at, length);
    for (const std::byte* source : from.subspan(1)) {
      for (std::size_t i = 0; i < length; ++i) sum[i] ^= source[at + i];  // NOLINT(*-constant-array-index)
    }
    std::memcpy(to + at, sum.data(), length);
    crc = crc32c(std::span(sum).first(length), crc);
  }
  return crc;
}

}  // namespace

Kernel plain_kernel() noexcept { return {"plain", true, copy_plainly, copy_plainly, combine_plainly, combine_plainly}; }

}  // namespace kedge::checksum
