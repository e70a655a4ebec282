// Files that others write past the page cache, on the real file system.
#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "fs/file_system.hpp"

namespace kedge::fs::direct_files_test {
namespace {

constexpr std::size_t kSize = std::size_t{4} << 20U;

class DirectFiles : public testing::Test {
 protected:
  DirectFiles() {
    disk->remove(path);
    file = disk->create(path);
    file->reserve(kSize);
    page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  }
  ~DirectFiles() override { disk->remove(path); }
  void SetUp() override {
    if (file->direct_descriptor() < 0) GTEST_SKIP() << testing::TempDir() << " does not support O_DIRECT";
  }
  /// Pages of the file that the page cache has.
  std::size_t cached() const {
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    void* mapping = ::mmap(nullptr, kSize, PROT_READ, MAP_SHARED, descriptor, 0);
    ::close(descriptor);
    std::vector<unsigned char> resident(kSize / page);
    EXPECT_EQ(::mincore(mapping, kSize, resident.data()), 0);
    ::munmap(mapping, kSize);
    return static_cast<std::size_t>(std::ranges::count_if(resident, [](unsigned char one) { return (one & 1U) != 0; }));
  }

  std::string path = testing::TempDir() + "kedge-direct-file-" + std::to_string(::getpid());
  std::shared_ptr<FileSystem> disk = posix_file_system();
  std::unique_ptr<File> file;
  std::size_t page = 4096;
};

TEST_F(DirectFiles, HaveADescriptorOfTheirOwn) {
  const int descriptor = file->direct_descriptor();
  EXPECT_EQ(file->direct_descriptor(), descriptor);
  EXPECT_NE(::fcntl(descriptor, F_GETFL) & O_DIRECT, 0);
  EXPECT_NE(::fcntl(descriptor, F_GETFD) & FD_CLOEXEC, 0);
  const auto readable = disk->open(path, Access::read);
  EXPECT_EQ(readable->direct_descriptor(), -1);
  file.reset();
  EXPECT_EQ(::fcntl(descriptor, F_GETFL), -1) << "it is closed with the file";
}

TEST_F(DirectFiles, WhatIsWrittenByTheInterfaceStillGoesThroughTheCache) {
  (void)file->write_with_crc(0, std::vector<std::byte>(kSize, std::byte{1}), 0);
  EXPECT_EQ(cached(), kSize / page);
}

// Only clean pages are dropped: so those that were dirty are written.
TEST_F(DirectFiles, LeaveTheCacheToTheLastPage) {
  (void)file->write_with_crc(0, std::vector<std::byte>(kSize, std::byte{1}), 0);
  file->drop_cached_pages(page, kSize - 2 * page);
  EXPECT_LE(cached(), 2U);
  const std::unique_ptr<void, void (*)(void*)> memory(std::aligned_alloc(4096, kSize - 2 * page), std::free);
  std::fill_n(static_cast<std::byte*>(memory.get()), kSize - 2 * page, std::byte{2});
  EXPECT_EQ(::pwrite(file->direct_descriptor(), memory.get(), kSize - 2 * page, static_cast<off_t>(page)),
            static_cast<ssize_t>(kSize - 2 * page));
  file->drop_cached_pages(page, kSize - 2 * page);
  file->sync();
  std::vector<std::byte> found(kSize);
  (void)file->read_with_crc(0, found, 0);
  EXPECT_EQ(std::ranges::count(found, std::byte{1}), static_cast<std::ptrdiff_t>(2 * page));
  EXPECT_EQ(std::ranges::count(found, std::byte{2}), static_cast<std::ptrdiff_t>(kSize - 2 * page));
}

}  // namespace
}  // namespace kedge::fs::direct_files_test
