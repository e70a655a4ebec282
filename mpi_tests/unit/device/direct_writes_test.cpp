// From a device's memory to a file past the page cache: which pages, in which order, and what happens where it fails.
#include "device/direct_writes.hpp"

#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

#include "base/attempt.hpp"
#include "harness/cached_files.hpp"
#include "unit/device/staging_fixture.hpp"

namespace kedge::device::direct_writes_test {
namespace {

using faults::CachedFile;
using faults::PageCache;

constexpr std::uint64_t kPage = PageCache::kPageBytes;
constexpr std::uint64_t kBlock = std::uint64_t{4} << 20U;
constexpr std::uint64_t kSize = 2 * kBlock + 5003;

/// A file with a page cache, and devices that write past it.
class Direct : public StagingTest {
 protected:
  Direct() {
    devices->write_file = [this](int descriptor, std::uint64_t offset, std::span<const std::byte> bytes) {
      cache->write_past(descriptor, offset, bytes);
    };
    devices->compute_checksums();
    file.reserve(kFileBytes);
    fill(array.contents(), 7);
  }
  ~Direct() override {
    access->end();
    EXPECT_EQ(devices->direct_files(), 0U);
    disk->remove(path);
  }

  DirectWrites::Settings settings(bool is_wanted = true) {
    return {is_wanted, [this](LogLevel level, std::string_view line) { told.emplace_back(level, line); }};
  }
  DirectWrites::Transfer transfer(std::uint64_t offset, std::uint64_t size = kSize, unsigned threads = 1) {
    const Span from = memory(array, 0, size);
    return {{from.data, size}, from.location, {&file, access}, offset, kBlock, threads};
  }
  DirectWrites::CopyByHost by_host(const DirectWrites::Transfer& what) {
    return [this, &what](std::uint64_t begin, std::uint64_t length) {
      of_host += length;
      (void)file.write_with_crc(what.offset + begin, array.contents().subspan(begin, length), 0);
    };
  }
  /// By the host, where there is no direct way; whether there was one. What is in the file is right.
  bool write(DirectWrites& direct, const DirectWrites::Transfer& what) {
    of_host = 0;
    auto found = direct.write(what, by_host(what));
    const bool is_direct = found.has_value();
    if (!found) {
      by_host(what)(0, what.memory.size());
      found = checksums_of(what.memory.size());
      direct.compare_checksums(what, *found);
    }
    EXPECT_EQ(*found, checksums_of(what.memory.size()));
    std::vector<std::byte> stored(what.memory.size());
    (void)file.read_with_crc(what.offset, stored, 0);
    EXPECT_TRUE(std::ranges::equal(stored, array.contents().first(stored.size())));
    file.sync();
    (void)file.read_with_crc(what.offset, stored, 0);
    EXPECT_TRUE(std::ranges::equal(stored, array.contents().first(stored.size()))) << "when all is on the disk";
    EXPECT_EQ(cache->overwritten, 0U);
    EXPECT_EQ(cache->stale_reads, 0U);
    return is_direct;
  }
  std::vector<std::uint32_t> checksums_of(std::uint64_t size) const {
    std::vector<std::uint32_t> all;
    for (std::uint64_t at = 0; at < size; at += kBlock) {
      all.push_back(crc32c(array.contents().subspan(at, std::min(kBlock, size - at))));
    }
    return all;
  }
  std::size_t lines_with(std::string_view part) const {
    return static_cast<std::size_t>(
        std::ranges::count_if(told, [&](const auto& one) { return one.second.find(part) != std::string::npos; }));
  }

  static constexpr std::uint64_t kFileBytes = 16U << 20U;
  std::string path = testing::TempDir() + "kedge-direct-" + std::to_string(::getpid());
  std::shared_ptr<PageCache> cache = std::make_shared<PageCache>();
  std::shared_ptr<fs::FileSystem> disk = fs::posix_file_system();
  CachedFile file{(disk->remove(path), disk->create(path)), cache};
  std::shared_ptr<FileRegistration> access = std::make_shared<FileRegistration>();
  ModelDevices::Array array{*devices, 0, kFileBytes};
  std::vector<std::pair<LogLevel, std::string>> told;
  std::uint64_t of_host = 0;
};

// The first one decides who computes the checksums.
TEST_F(Direct, WritesWholePagesAndTheHostTheRest) {
  DirectWrites direct(devices, settings());
  EXPECT_FALSE(write(direct, transfer(0)));
  for (const std::uint64_t offset : {std::uint64_t{0}, kPage, kPage + 1, 3 * kPage - 1}) {
    for (const std::uint64_t size : {kSize, 2 * kBlock, 2 * kBlock + 1, kBlock}) {
      for (const unsigned threads : {1U, 3U}) {
        fill(array.contents(), static_cast<unsigned>(offset + size + threads));
        const std::size_t before = devices->written_directly();
        EXPECT_TRUE(write(direct, transfer(offset, size, threads))) << size << " at " << offset;
        EXPECT_EQ(devices->written_directly() - before + of_host, size) << "nothing is written twice";
        EXPECT_LT(of_host, 2 * kPage);
        EXPECT_GT(of_host, 0U) << "the host copies the end, so that CUDA refuses memory that is smaller";
      }
    }
  }
  EXPECT_EQ(lines_with("by GPUDirect Storage, as the model does"), 1U);
}

// Pages that an earlier checkpoint left dirty, or that are read ahead, are in nobody's way: write() looks for both.
TEST_F(Direct, NothingOlderIsWrittenOverItOrReadInItsPlace) {
  DirectWrites direct(devices, settings());
  EXPECT_FALSE(write(direct, transfer(kPage)));
  const std::vector<std::byte> older(kSize, std::byte{0xaa});
  for (unsigned step = 1; step <= 3; ++step) {
    (void)file.write_with_crc(kPage, older, 0);  // dirty
    fill(array.contents(), step);
    EXPECT_TRUE(write(direct, transfer(kPage)));
  }
}

// Pages are not always kept one by one: those around a region must not become dirty with its own.
TEST_F(Direct, AFileLeavesTheCacheBeforeItsFirstRegion) {
  DirectWrites direct(devices, settings());
  EXPECT_FALSE(write(direct, transfer(kPage)));
  access->end();
  const std::vector<std::byte> older(kFileBytes, std::byte{0xaa});
  (void)file.write_with_crc(0, older, 0);
  EXPECT_EQ(cache->pages_of(path), kFileBytes / kPage);
  std::size_t left = kFileBytes;
  devices->on_call = [&](const std::string& what) {
    if (what == "direct_file") left = cache->pages_of(path);
  };
  EXPECT_TRUE(write(direct, transfer(kPage)));
  EXPECT_EQ(left, 0U);
}

TEST_F(Direct, SmallRegionsAndOtherFilesAreNotItsBusiness) {
  int calls = 0;
  devices->on_call = [&](const std::string& what) { calls += what == "direct_file" ? 1 : 0; };
  DirectWrites direct(devices, settings());
  EXPECT_FALSE(write(direct, transfer(0, kBlock - 1)));
  auto nowhere = transfer(0);
  nowhere.target = {};
  EXPECT_FALSE(direct.write(nowhere, by_host(nowhere)));
  direct.compare_checksums(nowhere, {});
  DirectWrites off(devices, settings(false));
  EXPECT_FALSE(write(off, transfer(0)));
  EXPECT_FALSE(write(off, transfer(0)));
  EXPECT_EQ(calls, 0);
  EXPECT_TRUE(told.empty());
}

TEST_F(Direct, WarnsOnceWhereItIsWantedAndThereIsNone) {
  devices->write_file = {};
  DirectWrites on(devices, settings());
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(write(on, transfer(0)));
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told[0].first, LogLevel::warning);
}

TEST_F(Direct, AnotherWayServesWhereThisOneFails) {
  DirectWrites on(devices, settings());
  EXPECT_FALSE(write(on, transfer(0)));
  devices->fail("direct_write", 1, ErrorCode::bad_state);
  EXPECT_FALSE(write(on, transfer(0)));
  EXPECT_EQ(lines_with("not by GPUDirect Storage: the model was told to fail"), 1U);
  const std::size_t before = devices->written_directly();
  EXPECT_FALSE(write(on, transfer(0)));
  EXPECT_EQ(devices->written_directly(), before) << "it is not tried again";
}

// Managed memory, for one.
TEST_F(Direct, MemoryThatItDoesNotTakeGoesAnotherWayAndOtherMemoryDoesNot) {
  DirectWrites on(devices, settings());
  EXPECT_FALSE(write(on, transfer(0)));
  devices->fail("direct_write", 1, ErrorCode::invalid_argument);
  EXPECT_FALSE(write(on, transfer(0)));
  EXPECT_TRUE(write(on, transfer(0)));
  EXPECT_EQ(lines_with("not by GPUDirect Storage"), 0U);
}

TEST_F(Direct, WhatTheFileOrTheDeviceFailsWithIsThrown) {
  DirectWrites on(devices, settings());
  EXPECT_FALSE(write(on, transfer(0)));
  const auto what = transfer(0);
  for (const ErrorCode code : {ErrorCode::io, ErrorCode::no_space}) {
    devices->fail("direct_write", 1, code);
    const auto failure = attempt([&] { (void)on.write(what, by_host(what)); });
    ASSERT_TRUE(failure);
    EXPECT_EQ(failure->code, code);
    EXPECT_EQ(failure->path, path);
    EXPECT_TRUE(write(on, what)) << "the next one is not concerned";
  }
  devices->fail("direct_write", 1, ErrorCode::device_failed);
  EXPECT_EQ(attempt([&] { (void)on.write(what, by_host(what)); })->code, ErrorCode::device_failed);
}

TEST_F(Direct, ADeviceThatIsLostWhileAFileIsRegisteredIsThrown) {
  DirectWrites on(devices, settings());
  devices->fail("direct_file", 1, ErrorCode::device_failed);
  const auto what = transfer(0);
  EXPECT_EQ(attempt([&] { (void)on.write(what, by_host(what)); })->code, ErrorCode::device_failed);
}

TEST_F(Direct, NeedsChecksumsOfTheDevice) {
  devices->compute_checksums(1);
  DirectWrites on(devices, settings());
  const auto what = transfer(0);
  EXPECT_FALSE(on.write(what, by_host(what)));
  EXPECT_EQ(attempt([&] { write(on, what); })->code, ErrorCode::corrupt);
  EXPECT_FALSE(write(on, transfer(0)));
  EXPECT_EQ(lines_with("not by GPUDirect Storage: the checksums of this GPU's memory are computed by the host"), 1U);
  EXPECT_EQ(devices->written_directly(), 0U);
}

TEST_F(Direct, ADeviceThatComputesNoneIsNotUsed) {
  const auto plain = std::make_shared<ModelDevices>();
  plain->write_file = devices->write_file;
  const ModelDevices::Array own(*plain, 0, kFileBytes);
  DirectWrites on(plain, settings());
  auto what = transfer(0);
  what.memory = {static_cast<const std::byte*>(own.address()), kSize};
  EXPECT_FALSE(on.write(what, by_host(what)));
  on.compare_checksums(what, checksums_of(kSize));
  EXPECT_FALSE(on.write(what, by_host(what)));
  EXPECT_EQ(lines_with("not by GPUDirect Storage: the checksums of this GPU's memory are computed by the host"), 1U);
  EXPECT_EQ(plain->written_directly(), 0U);
  access->end();
}

// However long the device takes: the host never sees the bytes.
TEST_F(Direct, TakesTheDevicesChecksumsThoughTheyAreSlower) {
  devices->compute_checksums(0, std::chrono::milliseconds(50));
  DirectWrites on(devices, settings());
  EXPECT_FALSE(write(on, transfer(0)));
  EXPECT_TRUE(write(on, transfer(0)));
  EXPECT_EQ(lines_with("are computed by the GPU"), 1U);
}

TEST_F(Direct, RegistrationsEndWithTheirFileOrWithAll) {
  DirectWrites on(devices, settings());
  EXPECT_FALSE(write(on, transfer(0)));
  EXPECT_TRUE(write(on, transfer(0)));
  EXPECT_EQ(devices->direct_files(), 1U);
  access->end();
  EXPECT_EQ(devices->direct_files(), 0U);
  EXPECT_TRUE(write(on, transfer(0)));
  EXPECT_EQ(devices->direct_files(), 1U);
  on.release();
  EXPECT_EQ(devices->direct_files(), 0U);
}

}  // namespace
}  // namespace kedge::device::direct_writes_test
