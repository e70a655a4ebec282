// Messages from the memory of a mapped file that another process truncates: the connection stays, and whoever sends
// them can ask what became of the file.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "fs/guarded_range.hpp"
#include "harness/socket_ranks.hpp"

namespace kedge::comm::sockets_truncated_test {
namespace {

using testing::run_socket_ranks;
using testing::socket_plans;
using Bytes = std::vector<std::byte>;

constexpr std::size_t kPage = 4096;
constexpr std::size_t kBytes = std::size_t{5} << 20U;

Deadline soon() { return Deadline::after(std::chrono::seconds(20)); }

/// A file of sevens in memory, mapped as those of a store are.
class MappedFile {
 public:
  MappedFile() : file_(::memfd_create("kedge-test", MFD_CLOEXEC)) {
    const Bytes sevens(kBytes, std::byte{7});
    if (::write(file_, sevens.data(), kBytes) != static_cast<ssize_t>(kBytes)) return;
    void* const memory = ::mmap(nullptr, kBytes, PROT_READ, MAP_SHARED, file_, 0);
    if (memory == MAP_FAILED) return;
    bytes_ = {static_cast<std::byte*>(memory), kBytes};
    guarded_.emplace(bytes_.data(), kBytes, fs::Access::read);
  }
  ~MappedFile() {
    guarded_.reset();
    if (!bytes_.empty()) ::munmap(bytes_.data(), kBytes);
    ::close(file_);
  }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }
  [[nodiscard]] bool is_intact() const { return guarded_->is_intact(); }
  void truncate(std::size_t size) const { ASSERT_EQ(::ftruncate(file_, static_cast<off_t>(size)), 0); }

 private:
  int file_;
  std::span<std::byte> bytes_;
  std::optional<fs::GuardedRange> guarded_;
};

class SocketsTruncated : public ::testing::TestWithParam<std::size_t> {};

TEST_P(SocketsTruncated, WhatIsGoneIsSentAsZerosAndTheConnectionStays) {
  const std::size_t left = GetParam();
  const auto failures = run_socket_ranks(socket_plans(2), [&](SocketTransport& transport) {
    if (transport.rank() == 0) {
      const MappedFile file;
      ASSERT_EQ(file.bytes().size(), kBytes);
      file.truncate(left);
      ASSERT_TRUE(transport.send(1, 1, file.bytes())->wait(soon()));
      EXPECT_FALSE(file.is_intact());
      Bytes answer(1);
      ASSERT_TRUE(transport.receive(1, 2, answer)->wait(soon()));
      return;
    }
    Bytes all(kBytes, std::byte{1});
    ASSERT_TRUE(transport.receive(0, 1, all)->wait(soon()));
    const auto zeros = std::span(all).subspan(left);
    EXPECT_TRUE(std::ranges::equal(std::span(all).first(left), Bytes(left, std::byte{7})));
    EXPECT_TRUE(std::ranges::equal(zeros, Bytes(zeros.size(), std::byte{0})));
    ASSERT_TRUE(transport.send(0, 2, std::span(all).first(1))->wait(soon()));
  });
  for (const auto& failure : failures) EXPECT_FALSE(failure) << failure->message;
}

INSTANTIATE_TEST_SUITE_P(Left, SocketsTruncated, ::testing::Values(std::size_t{0}, kPage, kBytes / 2, kBytes - kPage));

}  // namespace
}  // namespace kedge::comm::sockets_truncated_test
