// Copies through mappings: wherever they lie, they give what a plain copy gives.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "checksum/crc32c.hpp"
#include "fs/file_system.hpp"

namespace kedge::fs::mapping_test {
namespace {

std::vector<std::byte> noise(std::size_t size) {
  std::vector<std::byte> bytes(size);
  std::uint32_t state = 12345;
  for (std::byte& byte : bytes) byte = static_cast<std::byte>((state = state * 1664525U + 1013904223U) >> 24U);
  return bytes;
}

/// A mapped file in memory, if there is such a place, else on disk.
class Mapped : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = std::filesystem::is_directory("/dev/shm") ? "/dev/shm" : testing::TempDir();
    name = join(name, "kedge-mapped-XXXXXX");
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    directory_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  std::string directory_;
  std::shared_ptr<FileSystem> system_ = posix_file_system();
};

TEST_F(Mapped, CopiesThroughANewMappingArriveWhereverTheyLie) {
  constexpr std::uint64_t kSize = (std::uint64_t{9} << 20U) + 12'345;  // the last chunk of the mapping is a part of one
  const auto file = system_->create(join(directory_, "file"));
  file->reserve(kSize);
  const auto mapping = file->map(kSize);
  const auto bytes = noise(kSize);
  // Out of order, over the borders of chunks and of pages, to the last byte.
  for (const std::uint64_t begin : {std::uint64_t{5} << 20U, std::uint64_t{0}, std::uint64_t{3'000'001}}) {
    const std::uint64_t end = begin == 0 ? 3'000'001 : begin == 3'000'001 ? std::uint64_t{5} << 20U : kSize;
    const auto part = std::span(bytes).subspan(begin, end - begin);
    EXPECT_EQ(mapping->write_with_crc(begin, part, 0), crc32c(part));
  }
  std::vector<std::byte> back(kSize);
  EXPECT_EQ(file->read_with_crc(0, back, 0), crc32c(bytes));
  EXPECT_EQ(back, bytes);
}

TEST_F(Mapped, WhatIsReadThroughANewMappingIsThereWhereverItLies) {
  constexpr std::uint64_t kSize = (std::uint64_t{5} << 20U) + 4321;
  const auto file = system_->create(join(directory_, "file"));
  file->reserve(kSize);
  const auto bytes = noise(kSize);
  (void)file->write_with_crc(0, bytes, 0);
  const std::uint64_t mib = std::uint64_t{1} << 20U;
  for (const std::uint64_t begin : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{65'535}, mib, 2 * mib - 1}) {
    for (const std::uint64_t length : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{65'537}, mib - 1, mib, 2 * mib,
                                       2 * mib + 1, kSize - begin}) {
      const auto part = std::span(bytes).subspan(begin, length);
      EXPECT_EQ(file->map(kSize)->checksum(begin, length, 9), crc32c(part, 9)) << begin << " " << length;
      std::vector<std::byte> back(length + 2, std::byte{0xee});
      EXPECT_EQ(file->map(kSize)->read_with_crc(begin, std::span(back).subspan(1, length), 9), crc32c(part, 9));
      EXPECT_TRUE(std::ranges::equal(std::span(back).subspan(1, length), part)) << begin << " " << length;
      EXPECT_TRUE(back.front() == std::byte{0xee} && back.back() == std::byte{0xee});
      std::ranges::fill(back, std::byte{0xee});
      file->map(kSize)->read(begin, std::span(back).subspan(1, length));
      EXPECT_TRUE(std::ranges::equal(std::span(back).subspan(1, length), part)) << begin << " " << length;
      EXPECT_TRUE(back.front() == std::byte{0xee} && back.back() == std::byte{0xee});
    }
  }
}

TEST_F(Mapped, SeveralThreadsCopyAtOnce) {
  constexpr std::uint64_t kShare = (std::uint64_t{3} << 20U) + 100;
  constexpr std::uint64_t kThreads = 4;
  const auto file = system_->create(join(directory_, "file"));
  file->reserve(kThreads * kShare);
  const auto mapping = file->map(kThreads * kShare);
  const auto bytes = noise(kThreads * kShare);
  {
    std::vector<std::jthread> threads;
    for (std::uint64_t i = 0; i < kThreads; ++i) {
      threads.emplace_back(
          [&, i] { (void)mapping->write_with_crc(i * kShare, std::span(bytes).subspan(i * kShare, kShare), 0); });
    }
  }
  EXPECT_TRUE(std::ranges::equal(mapping->bytes(), bytes));
}

}  // namespace
}  // namespace kedge::fs::mapping_test
