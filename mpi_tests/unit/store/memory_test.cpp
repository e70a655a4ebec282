// A store file's bytes where they lie in memory, for who writes there by other means.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "store/store_file.hpp"

namespace kedge::faults {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20U;

struct EndlessSpace final : store::SpaceKeeper {
  store::Admission::Admitted admit(std::uint64_t /*additional_bytes*/) const override { return nullptr; }
  bool is_ample(std::uint64_t /*additional_bytes*/) const override { return true; }
  void explain(const Failure& refused, std::uint64_t /*additional_bytes*/) const override { throw Error(refused); }
};

/// Over the real file system: memory that is unmapped cannot be touched.
class MemoryOfAFile : public testing::Test {
 protected:
  ~MemoryOfAFile() override { system->remove(path); }
  [[nodiscard]] std::unique_ptr<store::StoreFile> make(bool memory_backed) {
    return std::make_unique<store::StoreFile>(system->create(path), memory_backed, space);
  }
  /// Touches the memory when it is let go.
  void keep(store::StoreFile& file) {
    const device::HostMemory memory = file.memory();
    ASSERT_NE(memory.kept, nullptr);
    *memory.kept = std::shared_ptr<void>(memory.bytes.data(), [this, bytes = memory.bytes](void*) {
      bytes.back() = std::byte{1};
      ++let_go;
    });
  }
  std::string path = testing::TempDir() + "kedge-memory-" + std::to_string(::getpid());
  std::shared_ptr<fs::FileSystem> system = fs::posix_file_system();
  EndlessSpace space;
  int let_go = 0;
};

TEST_F(MemoryOfAFile, IsTheFile) {
  const auto file = make(true);
  file->set_size(kMiB);
  file->filled();
  const device::HostMemory memory = file->memory();
  ASSERT_EQ(memory.bytes.size(), kMiB);
  std::ranges::fill(memory.bytes, std::byte{7});
  std::byte read{};
  (void)file->bytes().copy_out(kMiB - 1, {&read, 1}, 0);
  EXPECT_EQ(read, std::byte{7});
}

TEST_F(MemoryOfAFile, LetsGoWhatItKeptBeforeItIsUnmapped) {
  auto file = make(true);
  file->set_size(kMiB);
  file->filled();
  keep(*file);
  file->set_size(kMiB);
  EXPECT_EQ(let_go, 0) << "nothing changed";
  file->set_size(2 * kMiB);
  EXPECT_EQ(let_go, 1);
  file->filled();
  keep(*file);
  file->set_size(kMiB);
  EXPECT_EQ(let_go, 2);
  keep(*file);
  file->empty();
  EXPECT_EQ(let_go, 3);
  file->set_size(kMiB);
  file->filled();
  keep(*file);
  file.reset();
  EXPECT_EQ(let_go, 4);
}

// Entering it page by page is slower than writing.
TEST_F(MemoryOfAFile, IsNotOfferedBeforeItWasWritten) {
  const auto file = make(true);
  EXPECT_TRUE(file->memory().bytes.empty());
  file->reserve(kMiB);
  EXPECT_TRUE(file->memory().bytes.empty());
  file->filled();
  EXPECT_EQ(file->memory().bytes.size(), kMiB);
}

TEST_F(MemoryOfAFile, ThereIsNoneOnBlockStorage) {
  const auto file = make(false);
  file->set_size(kMiB);
  file->filled();
  EXPECT_TRUE(file->memory().bytes.empty());
}

}  // namespace
}  // namespace kedge::faults
