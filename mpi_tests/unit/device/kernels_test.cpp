// What runs on a GPU, run here: the kernels' own source gives, to the bit, what the processor computes.
#include "unit/device/emulated_cuda.hpp"
// The source itself.
#include "device/kernels/kernels.cu"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

#include "checksum/crc32c.hpp"
#include "codec/reed_solomon.hpp"

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

/// What the kernel makes of these symbols, for each of the rows of coefficients.
std::vector<std::vector<std::byte>> combined(const std::vector<std::vector<std::byte>>& symbols,
                                             const std::vector<std::vector<std::uint8_t>>& rows, std::size_t size) {
  std::vector<std::vector<std::byte>> outputs(rows.size(), std::vector<std::byte>(size, std::byte{0xee}));
  Combination what;
  what.words = size / 16;
  what.inputs = static_cast<std::uint32_t>(symbols.size());
  for (std::size_t i = 0; i < symbols.size(); ++i) what.input[i] = {symbols[i].data(), symbols[i].size() / 16};
  for (std::size_t out = 0; out < rows.size(); ++out) {
    what.output[out] = outputs[out].data();
    for (std::size_t i = 0; i < symbols.size(); ++i) what.products[i][out] = products_of(rows[out][i]);
  }
  void (*const kernels[])(Combination) = {kedge_combine_1, kedge_combine_2, kedge_combine_3, kedge_combine_4};
  emulated::launch(2, 3, [&] { kernels[rows.size() - 1](what); });
  const bool is_xor = rows.size() == 1 && std::ranges::all_of(rows[0], [](std::uint8_t one) { return one == 1; });
  if (is_xor) {
    const auto sums = outputs;
    emulated::launch(2, 3, [&] { kedge_xor(what); });
    EXPECT_TRUE(sums == outputs);
  }
  return outputs;
}

TEST(Kernels, SumsAreThoseOfTheProcessor) {
  for (const std::uint32_t parity : {1U, 2U, 3U, 4U}) {
    for (const std::uint32_t data : {1U, 2U, 7U, 28U}) {
      const codec::ErasureCode code(data, parity);
      std::vector<std::vector<std::byte>> symbols;
      for (std::uint32_t i = 0; i < data; ++i) symbols.push_back(noise(i == 1 ? 320 : 1600, i + 1));
      std::vector<std::vector<std::uint8_t>> rows(parity);
      for (std::uint32_t j = 0; j < parity; ++j) {
        for (std::uint32_t i = 0; i < data; ++i) rows[j].push_back(code.coefficient(j, i));
      }
      const auto found = combined(symbols, rows, 1600);
      for (std::uint32_t j = 0; j < parity; ++j) {
        std::vector<codec::Term> terms;
        for (std::uint32_t i = 0; i < data; ++i) terms.push_back({symbols[i], rows[j][i]});
        std::vector<std::byte> expected(1600);
        codec::combine(expected, terms);
        EXPECT_TRUE(found[j] == expected) << data << " and " << j << " of " << parity;
      }
    }
  }
}

}  // namespace
}  // namespace kedge::device::kernels_test
