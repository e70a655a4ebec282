// What runs on a GPU, run here: the kernels' own source, against what the processor computes.
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

#include "base/checksum.hpp"
#include "codec/reed_solomon.hpp"

namespace kedge::device {
namespace {

std::vector<std::byte> noise(std::size_t size, unsigned seed) {
  std::vector<std::byte> bytes(size);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>((seed = seed * 1664525U + 1013904223U) >> 24U);
  return bytes;
}

/// CRC32C of each piece, as the kernel makes it.
std::vector<std::uint32_t> checksums(std::span<const std::byte> bytes, std::uint64_t piece_bytes, std::byte* copy) {
  std::vector<std::uint32_t> raw((bytes.size() + piece_bytes - 1) / piece_bytes);
  emulated::launch(static_cast<unsigned>(raw.size()), kThreads, [&] {
    kedge_crc32c(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size(), piece_bytes,
                 reinterpret_cast<std::uint8_t*>(copy), raw.data());
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
  for (const std::size_t size : {1U, 2U, 3U, 4U, 5U, 511U, 2048U, 4 * kFoldFar - 1, 4 * kFoldFar, 4 * kFoldFar + 1,
                                 4 * (kFoldFar + kFoldStep) + 2, 100'000U, 131'072U}) {
    for (const std::size_t offset : {0U, 1U, 2U, 3U}) {
      const auto part = std::span(bytes).subspan(offset, size);
      EXPECT_EQ(checksums(part, size, nullptr).front(), crc32c(part)) << size << " from " << offset;
    }
  }
}

TEST(Kernels, EachPieceHasItsOwnChecksumAndIsCopied) {
  const auto bytes = noise(200'003, 2);
  for (const std::size_t offset : {0U, 1U, 3U}) {
    const auto part = std::span(bytes).subspan(offset, 200'000);
    const std::uint64_t piece_bytes = 65'536;
    std::vector<std::byte> copy(part.size() + 8, std::byte{0xee});
    const auto found = checksums(part, piece_bytes, copy.data() + 4);
    ASSERT_EQ(found.size(), 4U);
    for (std::size_t i = 0; i < found.size(); ++i) {
      const std::size_t begin = i * piece_bytes;
      EXPECT_EQ(found[i], crc32c(part.subspan(begin, std::min<std::size_t>(piece_bytes, part.size() - begin))));
    }
    EXPECT_TRUE(std::ranges::equal(part, std::span(copy).subspan(4, part.size())));
    EXPECT_EQ(copy[3], std::byte{0xee});
    EXPECT_EQ(copy[part.size() + 4], std::byte{0xee});
  }
}

TEST(Kernels, ACopyMayBeginAnywhere) {
  const auto bytes = noise(30'001, 3);  // the last piece is shorter, and not of whole words
  for (const std::size_t offset : {0U, 1U, 2U, 3U}) {
    std::vector<std::byte> copy(bytes.size() + 16, std::byte{0xee});
    std::byte* at = copy.data() + 8 + offset;
    const auto found = checksums(bytes, 10'000, at);
    EXPECT_EQ(found.front(), crc32c(std::span(bytes).first(10'000)));
    EXPECT_EQ(found.back(), crc32c(std::span(bytes).last(1)));
    EXPECT_EQ(std::memcmp(at, bytes.data(), bytes.size()), 0);
    EXPECT_EQ(at[-1], std::byte{0xee});
    EXPECT_EQ(at[bytes.size()], std::byte{0xee});
  }
}

/// What the kernel makes of these symbols, for each of the rows of coefficients.
std::vector<std::vector<std::byte>> combined(const std::vector<std::vector<std::byte>>& symbols,
                                             const std::vector<std::vector<std::uint8_t>>& rows, std::size_t size) {
  std::vector<std::vector<std::byte>> outputs(rows.size(), std::vector<std::byte>(size, std::byte{0xee}));
  Combination what;
  what.words = size / 16;
  what.outputs = static_cast<std::uint32_t>(rows.size());
  for (std::size_t out = 0; out < rows.size(); ++out) what.output[out] = outputs[out].data();
  for (std::size_t i = 0; i < symbols.size(); ++i) {
    std::uint8_t coefficients[kOutputsMax] = {};
    for (std::size_t out = 0; out < rows.size(); ++out) coefficients[out] = rows[out][i];
    what.input[what.inputs++] = input_of(symbols[i].data(), symbols[i].size() / 16, coefficients);
  }
  emulated::launch(2, 3, [&] { kedge_combine(what); });
  return outputs;
}

TEST(Kernels, SumsAreThoseOfTheProcessor) {
  for (const std::uint32_t parity : {1U, 2U, 4U}) {
    for (const std::uint32_t data : {1U, 2U, 7U, 28U}) {
      const codec::Code code(data, parity);
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
}  // namespace kedge::device
