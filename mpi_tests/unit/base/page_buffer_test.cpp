// A buffer of whole pages keeps its bytes until more are asked for, and gives everything back.
#include "base/page_buffer.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <new>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace kedge::page_buffer_test {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20U;

std::uint64_t private_bytes() {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string key;
    std::uint64_t kib = 0;
    if (words >> key >> kib && key == "RssAnon:") return kib * 1024;
  }
  return 0;
}

TEST(PageBuffer, KeepsItsBytesUntilMoreAreAskedFor) {
  PageBuffer buffer;
  EXPECT_TRUE(buffer.ensure_size(0).empty());
  std::ranges::fill(buffer.ensure_size(5000), std::byte{7});
  const auto less = buffer.ensure_size(100);
  EXPECT_EQ(less.size(), 100U);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(less.data()) % 4096, 0U);
  EXPECT_TRUE(std::ranges::all_of(buffer.ensure_size(5000), [](std::byte byte) { return byte == std::byte{7}; }));
  EXPECT_EQ(buffer.ensure_size(3 * kMiB).size(), 3 * kMiB);
  buffer.ensure_size(3 * kMiB).back() = std::byte{1};
  PageBuffer other = std::move(buffer);
  EXPECT_EQ(other.ensure_size(3 * kMiB).back(), std::byte{1});
  EXPECT_THROW((void)other.ensure_size(std::uint64_t{1} << 62U), std::bad_alloc);
  EXPECT_EQ(other.ensure_size(10).size(), 10U) << "usable after what was refused";
}

/// With memory from malloc the second turn and later ones leave holes that are never given back.
TEST(PageBuffer, GivesEverythingBack) {
  if (private_bytes() == 0) GTEST_SKIP() << "this system does not tell how much private memory a process has";
  std::vector<std::vector<std::byte>> small;
  const std::uint64_t before = private_bytes();
  for (int turn = 0; turn < 3; ++turn) {
    std::vector<PageBuffer> buffers(16);
    for (PageBuffer& buffer : buffers) {
      std::ranges::fill(buffer.ensure_size(kMiB), std::byte{1});
      small.emplace_back(3000);
    }
    EXPECT_GE(private_bytes(), before + 15 * kMiB);
  }
  EXPECT_LE(private_bytes(), before + 4 * kMiB);
}

}  // namespace
}  // namespace kedge::page_buffer_test
