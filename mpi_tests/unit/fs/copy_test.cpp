// Copies of whole files: every byte, once, and its checksum at most once.
#include "fs/copy.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <limits>

#include "base/clock.hpp"
#include "checksum/crc32c.hpp"
#include "fs/rate_limiter.hpp"
#include "kedge/error.hpp"

namespace kedge::fs::copy_test {
namespace {

std::vector<std::byte> noise(std::size_t size_bytes) {
  std::vector<std::byte> bytes(size_bytes);
  for (std::size_t i = 0; i < size_bytes; ++i) bytes[i] = static_cast<std::byte>(i * 7 + i / 251);
  return bytes;
}

/// A file in memory that counts the bytes whose checksum was taken, and those that passed.
class Counted final : public ByteAccess {
 public:
  explicit Counted(std::vector<std::byte> bytes) : content(std::move(bytes)) {}

  std::uint32_t write_with_crc(std::uint64_t offset, std::span<const std::byte> bytes, std::uint32_t crc) override {
    write(offset, bytes);
    checked += bytes.size();
    return crc32c(bytes, crc);
  }
  void write(std::uint64_t offset, std::span<const std::byte> bytes) override {
    std::ranges::copy(bytes, at(offset, bytes.size()).begin());
    passed += bytes.size();
    longest = std::max(longest, bytes.size());
  }
  [[nodiscard]] std::uint32_t read_with_crc(std::uint64_t offset, std::span<std::byte> bytes,
                                            std::uint32_t crc) override {
    read(offset, bytes);
    checked += bytes.size();
    return crc32c(bytes, crc);
  }
  void read(std::uint64_t offset, std::span<std::byte> bytes) override {
    std::ranges::copy(at(offset, bytes.size()), bytes.begin());
    passed += bytes.size();
    longest = std::max(longest, bytes.size());
  }
  [[nodiscard]] std::uint32_t checksum(std::uint64_t offset, std::uint64_t length, std::uint32_t crc) override {
    passed += length;
    checked += length;
    return crc32c(at(offset, length), crc);
  }

  std::vector<std::byte> content;
  std::uint64_t checked = 0;
  std::uint64_t passed = 0;
  std::size_t longest = 0;

 private:
  std::span<std::byte> at(std::uint64_t offset, std::uint64_t length) {
    if (offset + length > content.size()) throw Error(ErrorCode::corrupt, "truncated");
    return std::span(content).subspan(offset, length);
  }
};

TEST(Copy, TakesTheChecksumOnceWhereItIsWritten) {
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{4096}, std::size_t{1'000'003}}) {
    for (const std::uint64_t piece : {std::uint64_t{4096}, std::uint64_t{262'144}, kCopyPieceBytes}) {
      Counted from(noise(size));
      Counted to{std::vector<std::byte>(size)};
      EXPECT_EQ(copy(from, to, size, piece), crc32c(from.content));
      EXPECT_EQ(to.content, from.content);
      EXPECT_EQ(from.passed, size);
      EXPECT_EQ(to.passed, size);
      EXPECT_EQ(from.checked, 0U);
      EXPECT_EQ(to.checked, size);
      EXPECT_LE(std::max(from.longest, to.longest), piece);
    }
  }
}

TEST(Copy, TakesNoneOfWhatIsVerifiedWhenItIsUsed) {
  Counted from(noise(5'000'001));
  Counted to(std::vector<std::byte>(from.content.size()));
  copy_unchecked(from, to, from.content.size());
  EXPECT_EQ(to.content, from.content);
  EXPECT_EQ(from.checked + to.checked, 0U);
  EXPECT_EQ(from.passed, to.passed);
}

TEST(Copy, OfASumTakesItsChecksumWithTheSum) {
  for (const std::size_t size : {std::size_t{1}, std::size_t{4097}, std::size_t{1'000'003}}) {
    const auto a = noise(size);
    const std::vector<std::byte> b(size, std::byte{0x5c});
    auto wanted = a;
    for (std::byte& byte : wanted) byte ^= std::byte{0x5c};
    Counted to{std::vector<std::byte>(size + 7)};
    const std::array<std::span<const std::byte>, 2> parts{a, b};
    EXPECT_EQ(to.write_xor(7, parts, 9), crc32c(wanted, 9));
    EXPECT_TRUE(std::ranges::equal(std::span(to.content).subspan(7), wanted));
    EXPECT_EQ(to.passed, size);
    EXPECT_EQ(to.checked, 0U);
  }
}

TEST(Copy, OfAFileThatIsShorterEndsThere) {
  Counted from(noise(5000));
  Counted to(std::vector<std::byte>(6000));
  EXPECT_THROW((void)copy(from, to, 5001, 4096), Error);
  EXPECT_THROW(copy_unchecked(from, to, 5001), Error);
}

TEST(Copy, AtAPaceIsTheSame) {
  const std::shared_ptr<Clock> clock = system_clock();
  for (const double bytes_per_s : {1e12, std::numeric_limits<double>::infinity()}) {
    std::uint64_t pieces = 0;
    RateLimiter pace(*clock, bytes_per_s, [&] { ++pieces; });
    Counted from(noise(5'000'001));
    Counted to(std::vector<std::byte>(from.content.size()));
    RateLimitedAccess paced(to, pace);
    paced.write(0, from.content);
    EXPECT_EQ(to.content, from.content);
    EXPECT_EQ(to.checked, 0U);
    EXPECT_EQ(pieces, pace.is_limited() ? 5U : 1U);
    EXPECT_EQ(copy(from, paced, from.content.size()), crc32c(from.content));
    std::vector<std::byte> back(1000);
    paced.read(4000, back);
    EXPECT_TRUE(std::ranges::equal(back, std::span(from.content).subspan(4000, 1000)));
    EXPECT_EQ(to.checked, from.content.size());
  }
}

/// Whoever says nothing of read and write has them by way of the others.
class Plain final : public ByteAccess {
 public:
  std::uint32_t write_with_crc(std::uint64_t offset, std::span<const std::byte> bytes, std::uint32_t crc) override {
    return inner.write_with_crc(offset, bytes, crc);
  }
  [[nodiscard]] std::uint32_t read_with_crc(std::uint64_t offset, std::span<std::byte> bytes,
                                            std::uint32_t crc) override {
    return inner.read_with_crc(offset, bytes, crc);
  }
  [[nodiscard]] std::uint32_t checksum(std::uint64_t offset, std::uint64_t length, std::uint32_t crc) override {
    return inner.checksum(offset, length, crc);
  }
  Counted inner{std::vector<std::byte>(5000)};
};

TEST(Copy, WorksWithWhoHasNoWayWithoutAChecksum) {
  Plain from;
  from.write(0, noise(5000));
  Plain to;
  copy_unchecked(from, to, 5000);
  EXPECT_EQ(to.inner.content, noise(5000));
}

}  // namespace
}  // namespace kedge::fs::copy_test
