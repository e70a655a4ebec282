// CRC32C agrees with published values; checksums of parts combine to that of the whole, and zeros are appended without
// being read.
#include "checksum/crc32c.hpp"

#include <gtest/gtest.h>

#include <random>
#include <span>
#include <string_view>
#include <vector>

namespace kedge::crc32c_test {
namespace {

std::vector<std::byte> random_bytes(std::size_t size, std::uint32_t seed) {
  std::mt19937 engine(seed);
  std::vector<std::byte> bytes(size);
  for (auto& byte : bytes) byte = static_cast<std::byte>(engine());
  return bytes;
}

TEST(Checksum, AgreesWithThePublishedValue) {
  constexpr std::string_view kDigits = "123456789";
  EXPECT_EQ(crc32c(std::as_bytes(std::span(kDigits))), 0xe3069283U);
  const std::vector<std::byte> zeros(32);  // RFC 3720, B.4
  EXPECT_EQ(crc32c(zeros), 0x8a9136aaU);
}

TEST(Checksum, OfPiecesAndOfCombinedPartsIsThatOfTheWhole) {
  for (const std::size_t size : {0U, 1U, 7U, 64U, 4095U, 70000U}) {
    const auto bytes = random_bytes(size, 7);
    const auto whole = crc32c(bytes);
    for (const std::size_t cut : {std::size_t{0}, size / 3, size / 2, size}) {
      const auto first = std::span(bytes).first(cut);
      const auto second = std::span(bytes).subspan(cut);
      EXPECT_EQ(crc32c(second, crc32c(first)), whole);
      EXPECT_EQ(crc32c_combine(crc32c(first), crc32c(second), second.size()), whole);
    }
  }
}

TEST(Checksum, IsTheSameForBytesThatAreAskedForAhead) {
  for (const std::size_t size : {0U, 1U, 2047U, 2048U, 2049U, 4095U, 4096U, 4097U, 6144U, 70000U}) {
    const auto bytes = random_bytes(size, 11);
    EXPECT_EQ(crc32c_from_memory(bytes, 5), crc32c(bytes, 5)) << size;
  }
}

TEST(Checksum, OfAppendedZerosNeedsNoZeros) {
  const auto bytes = random_bytes(100, 3);
  for (const std::size_t zeros : {0U, 1U, 511U, 4096U, 100000U}) {
    auto padded = bytes;
    padded.resize(bytes.size() + zeros);
    EXPECT_EQ(crc32c_zeros(zeros, crc32c(bytes)), crc32c(padded));
  }
}

}  // namespace
}  // namespace kedge::crc32c_test
