// A store file's bytes where they lie in memory, for whoever writes there by other means, such as a GPU.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/attempt.hpp"
#include "harness/model_devices.hpp"
#include "store/store_file.hpp"

namespace kedge::faults::memory_test {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20U;

struct EndlessSpace final : store::SpaceManager {
  store::Admission::Admitted admit_bytes(std::uint64_t /*additional_bytes*/) const override { return nullptr; }
  bool has_ample_space(std::uint64_t /*additional_bytes*/) const override { return true; }
  void throw_refusal(const Failure& refused, std::uint64_t /*additional_bytes*/) const override {
    throw Error(refused);
  }
};

std::string directory_in_memory() {
  return std::filesystem::is_directory("/dev/shm") ? "/dev/shm/" : testing::TempDir();
}

/// Over the real file system: memory that is unmapped cannot be touched.
class MemoryOfAFile : public testing::Test {
 protected:
  ~MemoryOfAFile() override { system->remove(path); }
  [[nodiscard]] std::unique_ptr<store::StoreFile> make(bool memory_backed) {
    return std::make_unique<store::StoreFile>(system->create(path), memory_backed, space);
  }
  static void fill_twice(store::StoreFile& file) {
    file.mark_filled();
    file.mark_filled();
  }
  /// By devices whose registration touches the memory when it ends.
  void reach(store::StoreFile& file) const {
    const device::HostMemory memory = file.memory();
    ASSERT_NE(memory.access, nullptr);
    ASSERT_TRUE(staging->can_access({}, memory));
  }
  /// As another process does it.
  void truncate(std::uint64_t size_bytes) const {
    ASSERT_EQ(::truncate(path.c_str(), static_cast<off_t>(size_bytes)), 0);
  }
  std::string path = directory_in_memory() + "kedge-memory-" + std::to_string(::getpid());
  std::shared_ptr<fs::FileSystem> system = fs::posix_file_system();
  EndlessSpace space;
  std::shared_ptr<ModelDevices> devices = std::make_shared<ModelDevices>();
  std::unique_ptr<device::Staging> staging =
      std::make_unique<device::Staging>(devices, device::StagingSize(), [](const Failure&) {});
};

TEST_F(MemoryOfAFile, IsTheFile) {
  const auto file = make(true);
  file->set_size(kMiB);
  fill_twice(*file);
  const device::HostMemory memory = file->memory();
  ASSERT_EQ(memory.bytes.size(), kMiB);
  std::ranges::fill(memory.bytes, std::byte{7});
  std::byte read{};
  (void)file->bytes().read_with_crc(kMiB - 1, {&read, 1}, 0);
  EXPECT_EQ(read, std::byte{7});
}

TEST_F(MemoryOfAFile, EndsItsRegistrationBeforeItIsUnmapped) {
  auto file = make(true);
  file->set_size(kMiB);
  fill_twice(*file);
  reach(*file);
  file->set_size(kMiB);
  EXPECT_EQ(devices->registered_bytes(), kMiB) << "nothing changed";
  file->set_size(2 * kMiB);
  EXPECT_EQ(devices->registered_bytes(), 0U);
  fill_twice(*file);
  reach(*file);
  file->set_size(kMiB);
  EXPECT_EQ(devices->registered_bytes(), 0U);
  fill_twice(*file);
  reach(*file);
  file->unseal_and_free();
  EXPECT_EQ(devices->registered_bytes(), 0U);
  file->set_size(kMiB);
  fill_twice(*file);
  reach(*file);
  file.reset();
  EXPECT_EQ(devices->registered_bytes(), 0U);
}

// Registering is slow: not for one use, nor where pages would have to be entered for it.
TEST_F(MemoryOfAFile, IsOfferedWhenItWasFilledTwiceInTheSameSize) {
  const auto file = make(true);
  EXPECT_TRUE(file->memory().bytes.empty());
  file->reserve(kMiB);
  EXPECT_TRUE(file->memory().bytes.empty());
  file->mark_filled();
  EXPECT_TRUE(file->memory().bytes.empty());
  file->mark_filled();
  EXPECT_EQ(file->memory().bytes.size(), kMiB);
  file->set_size(kMiB / 2);
  EXPECT_TRUE(file->memory().bytes.empty()) << "it begins anew";
}

TEST_F(MemoryOfAFile, ThereIsNoneOnBlockStorage) {
  const auto file = make(false);
  file->set_size(kMiB);
  fill_twice(*file);
  EXPECT_TRUE(file->memory().bytes.empty());
}

void expect_truncated(const std::optional<Failure>& failure) {
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->code, ErrorCode::io);
  EXPECT_NE(failure->message.find("truncated by another process"), std::string::npos) << failure->message;
}

/// It would have its old size again, and zeros where it was cut off.
TEST_F(MemoryOfAFile, OneThatWasTruncatedDoesNotGrow) {
  const auto file = make(true);
  const std::vector<std::byte> sevens(kMiB, std::byte{7});
  file->reserve(kMiB);
  file->bytes().write_with_crc(0, sevens, 0);
  truncate(4096);
  expect_truncated(attempt([&] { file->reserve(2 * kMiB); }));
}

/// So would one that gets its storage as it is written: by the next write.
TEST_F(MemoryOfAFile, OneThatWasTruncatedWhileItWasWrittenIsNotFlushed) {
  for (const std::uint64_t left : {std::uint64_t{4096}, kMiB / 2, kMiB}) {
    SCOPED_TRACE(left);
    system->remove(path);
    const auto file = make(true);
    const std::vector<std::byte> sevens(kMiB / 2, std::byte{7});
    file->grow_as_written(kMiB);
    file->bytes().write_with_crc(4096, std::span(sevens).subspan(4096), 0);
    truncate(left);
    file->bytes().write_with_crc(kMiB / 2, sevens, 0);
    const auto failure = attempt([&] { file->flush(false); });
    if (left == 4096) expect_truncated(failure);
    else EXPECT_FALSE(failure) << failure->message;
  }
}

}  // namespace
}  // namespace kedge::faults::memory_test
