// Any processor: ISA-L's checksum of each piece, which it leaves in the nearest cache for the copy.
#include <algorithm>
#include <cstring>

#include "checksum/crc32c.hpp"
#include "checksum/fetch_ahead.hpp"
#include "checksum/kernels.hpp"

namespace kedge::checksum {
namespace {

std::uint32_t copy_plainly(std::byte* to, const std::byte* a, const std::byte* /*b*/, std::size_t size,
                           std::uint32_t crc) noexcept {
  const std::span<const std::byte> from(a, size);
  for (std::size_t at = 0; at < size; at += kFetchBytes) {
    fetch_ahead(from, at);
    const auto piece = from.subspan(at, std::min(kFetchBytes, size - at));
    crc = crc32c(piece, crc);
    std::memcpy(to + at, piece.data(), piece.size());
  }
  return crc;
}

std::uint32_t combine_plainly(std::byte* to, const std::byte* a, const std::byte* b, std::size_t size,
                              std::uint32_t crc) noexcept {
  for (std::size_t at = 0; at < size; at += kFetchBytes) {
    const std::size_t end = std::min(size, at + kFetchBytes);
    for (std::size_t i = at; i < end; ++i) to[i] = a[i] ^ b[i];
    crc = crc32c({to + at, end - at}, crc);
  }
  return crc;
}

}  // namespace

Kernel plain_kernel() noexcept { return {"plain", true, copy_plainly, copy_plainly, combine_plainly, combine_plainly}; }

}  // namespace kedge::checksum
