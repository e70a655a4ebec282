// The file system that counts for kedge-bench: what is read is counted once, however it is read.
#include "counting_file_system.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <vector>

namespace kedge_bench::counting_file_system_test {
namespace {

using kedge::fs::Access;

TEST(CountingFileSystem, CountsWhatIsReadOnceHoweverItIsRead) {
  CountingFileSystem system(kedge::fs::posix_file_system());
  const std::string path = testing::TempDir() + "kedge-counted-" + std::to_string(::getpid());
  constexpr std::size_t kSize = 100'000;
  std::vector<std::byte> bytes(kSize, std::byte{3});
  {
    const auto file = system.create(path, 0600);
    file->reserve(kSize);
    file->write_with_crc(0, bytes, 0);
    EXPECT_EQ(system.take_bytes_read(), 0U) << "it was written";
  }
  const auto file = system.open(path, Access::read);
  (void)file->read_with_crc(0, std::span(bytes).first(10), 0);
  EXPECT_EQ(system.take_bytes_read(), 10U);
  file->read(5, std::span(bytes).first(20));
  EXPECT_EQ(system.take_bytes_read(), 20U);
  (void)file->checksum(0, kSize, 0);
  EXPECT_EQ(system.take_bytes_read(), kSize);
  const auto mapping = file->map(kSize);
  EXPECT_EQ(system.take_bytes_read(), 0U);
  (void)mapping->read_with_crc(0, std::span(bytes).first(10), 0);
  mapping->read(5, std::span(bytes).first(20));
  (void)mapping->checksum(0, 30, 0);
  EXPECT_EQ(system.take_bytes_read(), 60U);
  EXPECT_EQ(mapping->bytes().size(), kSize);
  EXPECT_EQ(system.take_bytes_read(), kSize) << "whoever has them may read them";
  system.remove(path);
  EXPECT_EQ(system.take_bytes_read(), 0U);
}

}  // namespace
}  // namespace kedge_bench::counting_file_system_test
