// Storage of files in memory: huge pages where the kernel makes them, small ones elsewhere, and the same bytes.
#include "fs/huge_pages.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "checksum/crc32c.hpp"
#include "fs/file_system.hpp"
#include "kedge/error.hpp"

namespace kedge::fs::huge_pages_test {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20U;
constexpr std::uint64_t kHugePageBytes = 2 * kMiB;

/// Huge pages that this file has, in bytes: what its mapping has of them.
std::uint64_t huge_bytes_mapped(const std::string& path) {
  std::ifstream smaps("/proc/self/smaps");
  bool here = false;
  for (std::string line; std::getline(smaps, line);) {
    if (line.find('-') < line.find(' ')) here = line.ends_with(path);
    if (here && line.starts_with("ShmemPmdMapped:")) return std::stoull(line.substr(15)) * 1024;
  }
  return 0;
}

bool denied() {
  std::ifstream enabled("/sys/kernel/mm/transparent_hugepage/shmem_enabled");
  std::string words;
  std::getline(enabled, words);
  return words.empty() || words.find("[deny]") != std::string::npos;
}

/// Since Linux 6.1 it makes huge pages of small ones, whatever the mount says.
bool makes_huge_pages() {
  utsname name{};
  int major = 0;
  int minor = 0;
  if (::uname(&name) != 0 || std::sscanf(name.release, "%d.%d", &major, &minor) != 2) return false;
  return !denied() && ::getpagesize() == 4096 && (major > 6 || (major == 6 && minor >= 1));
}

std::vector<std::byte> pattern(std::uint64_t size_bytes) {
  std::vector<std::byte> bytes(size_bytes);
  for (std::uint64_t i = 0; i < size_bytes; ++i)
    bytes[i] = static_cast<std::byte>(i * 7 + i / 4096 + 1);  // no zeros where pages begin
  return bytes;
}

long page_faults() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

/// A directory in /dev/shm, which most kernels give small pages only.
class SharedMemory : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = "/dev/shm/kedge-huge-XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) GTEST_SKIP() << "no /dev/shm here";
    directory_ = name;
  }
  void TearDown() override {
    if (!directory_.empty()) std::filesystem::remove_all(directory_);
  }
  std::string path(std::string_view name) const { return join(directory_, name); }

  std::string directory_;
  std::shared_ptr<FileSystem> system_ = posix_file_system();
};

TEST_F(SharedMemory, NewStorageIsOfHugePagesWhereTheKernelMakesThem) {
  constexpr std::uint64_t kSize = 16 * kMiB + 4096;
  const auto file = system_->create(path("a"));
  const std::uint64_t new_from = file->reserve(kSize);
  EXPECT_EQ(new_from % kHugePageBytes, 0U);
  EXPECT_LE(new_from, 16 * kMiB);
  EXPECT_EQ(file->status().size_bytes, kSize);
  const auto mapping = file->map(kSize);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(mapping->bytes().data()) % kHugePageBytes, 0U);
  EXPECT_TRUE(std::ranges::all_of(mapping->bytes(), [](std::byte byte) { return byte == std::byte{}; }));
  const auto bytes = pattern(kSize);
  const long before = page_faults();
  EXPECT_EQ(mapping->write_with_crc(0, std::span(bytes).first(new_from), 0), crc32c({bytes.data(), new_from}));
  EXPECT_LT(page_faults() - before, 50) << "what counts as cleared costs no more than a refill";
  mapping->write_with_crc(new_from, std::span(bytes).subspan(new_from), 0);
  EXPECT_EQ(file->checksum(0, kSize, 0), crc32c(bytes));
  EXPECT_EQ(huge_bytes_mapped(path("a")), new_from);
  if (makes_huge_pages()) {
    EXPECT_GE(new_from, kHugePageBytes);
  }
}

TEST_F(SharedMemory, WhatIsThereStaysWhereItIs) {
  constexpr std::uint64_t kOld = 3 * kMiB;
  constexpr std::uint64_t kSize = 12 * kMiB;
  const auto bytes = pattern(kSize);
  const auto file = system_->create(path("a"));
  file->write_with_crc(0, std::span(bytes).first(kOld), 0);
  const auto before = file->map(kOld);
  const std::uint64_t new_from = file->reserve(kSize);
  EXPECT_TRUE(new_from == kOld || (new_from % kHugePageBytes == 0 && new_from > kOld)) << new_from;
  const auto mapping = file->map(kSize);
  EXPECT_EQ(mapping->checksum(0, kOld, 0), crc32c({bytes.data(), kOld}));
  EXPECT_LE(huge_bytes_mapped(path("a")), 8 * kMiB) << "an extent with data in it must not be moved";
  mapping->write_with_crc(kOld, std::span(bytes).subspan(kOld), 0);
  EXPECT_EQ(before->checksum(0, kOld, 0), crc32c({bytes.data(), kOld}));
  EXPECT_EQ(file->checksum(0, kSize, 0), crc32c(bytes));
  EXPECT_EQ(file->reserve(kMiB), kMiB) << "all of that is there";
  EXPECT_EQ(file->status().size_bytes, kSize);
}

TEST_F(SharedMemory, OnlyHugePagesCanBeReserved) {
  constexpr std::uint64_t kSize = 8 * kMiB + 100;
  const auto file = system_->create(path("a"));
  file->truncate(kSize);
  const std::uint64_t had = file->reserve_huge_pages(kSize);
  EXPECT_LE(had, 8 * kMiB);
  if (makes_huge_pages()) {
    EXPECT_GE(had, kHugePageBytes);
  }
  EXPECT_THROW((void)file->map(kSize), Error) << "the rest is a hole, and a hole is a signal in a full store";
  file->reserve(kSize);
  const auto mapping = file->map(kSize);
  const auto bytes = pattern(kSize);
  EXPECT_EQ(mapping->write_with_crc(0, bytes, 0), crc32c(bytes));
  EXPECT_EQ(file->checksum(0, kSize, 0), crc32c(bytes));
}

TEST_F(SharedMemory, AMappingThatWasEnteredIsWrittenWithoutPageFaults) {
  constexpr std::uint64_t kSize = 8 * kMiB;  // 2048 pages of 4 KiB
  const auto bytes = pattern(kSize);
  const auto file = system_->create(path("a"));
  for (std::uint64_t at = kMiB; at <= kSize; at += kMiB) file->reserve(at);  // too little at a time for huge pages
  const auto mapping = file->map(kSize);
  ASSERT_EQ(huge_bytes_mapped(path("a")), 0U);
  if (mapping->prefault()) {  // kernels before 5.14 cannot
    const long before = page_faults();
    mapping->write_with_crc(0, bytes, 0);
    EXPECT_LT(page_faults() - before, 50);
  }
}

TEST(HugePages, TheMountsOptionsSayWhetherToAsk) {
  const std::string mountinfo =
      "30 1 0:24 / /huge=advise rw - tmpfs tmpfs rw,size=24684084k\n"
      "31 1 0:25 / /dev/shm rw,nosuid shared:4 - tmpfs huge=advise rw,size=1k,huge=advise,inode64\n"
      "32 1 0:26 / /always rw - tmpfs tmpfs rw,huge=always\n"
      "33 1 8:1 / /disk rw - ext4 /dev/sda1 rw,huge=advise\n"
      "34 1 0:27 / /last rw - tmpfs tmpfs rw,huge=advise";
  EXPECT_FALSE(needs_huge_page_advice(mountinfo, 0, 24));
  EXPECT_TRUE(needs_huge_page_advice(mountinfo, 0, 25));
  EXPECT_FALSE(needs_huge_page_advice(mountinfo, 0, 26));
  EXPECT_FALSE(needs_huge_page_advice(mountinfo, 8, 1));
  EXPECT_TRUE(needs_huge_page_advice(mountinfo, 0, 27));
  EXPECT_FALSE(needs_huge_page_advice(mountinfo, 0, 2));
  EXPECT_FALSE(needs_huge_page_advice("", 0, 27));
}

TEST(HugePages, AreTakenAsLongAsTheyCostLessThanSmallOnes) {
  EXPECT_TRUE(are_huge_pages_cheaper(2 * kMiB, 0.0001, 0.0002));
  EXPECT_TRUE(are_huge_pages_cheaper(256 * kMiB, 0.03, 0.12)) << "beside other ranks on the same core";
  EXPECT_FALSE(are_huge_pages_cheaper(2 * kMiB, 0.0023, 0.0046)) << "the first had to be made by moving memory";
  EXPECT_TRUE(are_huge_pages_cheaper(64 * kMiB, 0.0023 + 0.0065, 0.02)) << "one of them had";
  EXPECT_FALSE(are_huge_pages_cheaper(64 * kMiB, 0.02, 0.04)) << "six of them had";
  EXPECT_FALSE(are_huge_pages_cheaper(64 * kMiB, 0.005, 1.0)) << "waits for something";
}

/// Takes the mount away again, whatever the test came to.
struct Unmount {
  std::string path;
  ~Unmount() {
    ::umount2(path.c_str(), MNT_DETACH);
    ::rmdir(path.c_str());
  }
};

class HugePagesOnAMount : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Options, HugePagesOnAMount, testing::Values("never", "advise", "within_size", "always"),
                         [](const auto& param) { return std::string(param.param); });

TEST_P(HugePagesOnAMount, AreTakenAndChangeNoByteAndNoLimit) {
  std::string directory = join(testing::TempDir(), "kedge-huge-mount-XXXXXX");
  ASSERT_NE(::mkdtemp(directory.data()), nullptr);
  const Unmount unmount{directory};
  if (::mount("tmpfs", directory.c_str(), "tmpfs", 0, ("size=64m,huge=" + std::string(GetParam())).c_str()) != 0) {
    GTEST_SKIP() << "such a tmpfs cannot be mounted here: " << std::generic_category().message(errno);
  }
  constexpr std::uint64_t kSize = 8 * kMiB + 4096;
  const auto bytes = pattern(kSize);
  const auto system = posix_file_system();
  const auto file = system->create(join(directory, "a"));
  file->reserve(100);  // grows later
  file->reserve(kSize);
  const auto mapping = file->map(kSize);
  EXPECT_EQ(mapping->write_with_crc(0, bytes, 0), crc32c(bytes));
  EXPECT_EQ(file->checksum(0, kSize, 0), crc32c(bytes));
  const bool on_advice = GetParam() == std::string("advise") && !denied();
  if (on_advice || makes_huge_pages()) {
    EXPECT_GE(huge_bytes_mapped(join(directory, "a")), on_advice ? 2 * kHugePageBytes : kHugePageBytes);
  }
  // More than there is: an error, no signal, and everything is as it was.
  std::optional<Failure> failure;
  try {
    file->reserve(100 * kMiB);
  } catch (const Error& error) {
    failure = error.failure();
  }
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->system_errno, ENOSPC);
  EXPECT_EQ(file->status().size_bytes, kSize);
  EXPECT_EQ(mapping->checksum(0, kSize, 0), crc32c(bytes));
  EXPECT_GE(system->space(directory).free_bytes, 50 * kMiB);
  // All that there is: the last page too.
  const std::uint64_t free_bytes = system->space(directory).free_bytes;
  const auto rest = system->create(join(directory, "b"));
  rest->reserve(free_bytes);
  EXPECT_LT(system->space(directory).free_bytes, kMiB);
  EXPECT_THROW(file->reserve(kSize + 4 * kMiB), Error);
  EXPECT_EQ(mapping->checksum(0, kSize, 0), crc32c(bytes));
}

}  // namespace
}  // namespace kedge::fs::huge_pages_test
