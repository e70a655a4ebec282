// What runs on a GPU, run here: the kernels' own source gives, to the bit, what the processor computes.
#include "unit/device/emulated_cuda.hpp"
// The source itself.
#include "device/kernels/kernels.cu"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "checksum/crc32c.hpp"

namespace kedge::device::kernels_test {
namespace {

std::vector<std::byte> noise(std::size_t size, unsigned seed) {
  std::vector<std::byte> bytes(size);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>((seed = seed * 1664525U + 1013904223U) >> 24U);
  return bytes;
}

/// CRC32C of each piece, as the kernel makes it.
std::vector<std::uint32_t> checksums(std::span<const std::byte> bytes, std::uint64_t piece_bytes) {
  std::vector<std::uint32_t> raw((bytes.size() + piece_bytes - 1) / piece_bytes);
  emulated::launch(static_cast<unsigned>(raw.size()), kFoldStep, [&] {
    kedge_crc32c(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size(), piece_bytes, raw.data());
  });
  std::uint64_t begin = 0;
  for (std::uint32_t& one : raw) {
    one = crc32c_of_raw(one, std::min<std::uint64_t>(piece_bytes, bytes.size() - begin));
    begin += piece_bytes;
  }
  return raw;
}

TEST(Kernels, ChecksumsAreThoseOfTheProcessorAtEachSizeAndAlignment) {
  const auto bytes = noise(300'000, 1);
  const std::size_t far = std::size_t{kFoldFar} * kUnitBytes;
  const std::size_t step = std::size_t{kFoldStep} * kUnitBytes;
  for (const std::size_t size : {std::size_t{1}, std::size_t{2}, std::size_t{3}, std::size_t{4}, std::size_t{15},
                                 std::size_t{16}, std::size_t{17}, std::size_t{511}, step, far - 1, far, far + 1,
                                 far + step + 2, std::size_t{100'000}, std::size_t{262'144}}) {
    for (const std::size_t offset : {0U, 1U, 3U, 4U, 8U}) {
      const auto part = std::span(bytes).subspan(offset, size);
      EXPECT_EQ(checksums(part, size).front(), crc32c(part)) << size << " from " << offset;
    }
  }
}

TEST(Kernels, EachPieceHasItsOwnChecksum) {
  const auto bytes = noise(200'003, 2);
  for (const std::size_t offset : {0U, 1U, 3U}) {
    const auto part = std::span(bytes).subspan(offset, 200'000);
    const std::uint64_t piece_bytes = 65'536;
    const auto found = checksums(part, piece_bytes);
    ASSERT_EQ(found.size(), 4U);
    for (std::size_t i = 0; i < found.size(); ++i) {
      const std::size_t begin = i * piece_bytes;
      EXPECT_EQ(found[i], crc32c(part.subspan(begin, std::min<std::size_t>(piece_bytes, part.size() - begin))));
    }
  }
}

}  // namespace
}  // namespace kedge::device::kernels_test
