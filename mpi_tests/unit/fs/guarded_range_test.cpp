// What happens to a mapped file while it is used: an error of the call, never a signal; and who else waits for SIGBUS
// still gets it.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/run_on_threads.hpp"
#include "checksum/crc32c.hpp"
#include "fs/file_system.hpp"
#include "fs/guarded_range.hpp"
#include "kedge/error.hpp"

namespace kedge::fs::guarded_range_test {
namespace {

constexpr std::uint64_t kSize = std::uint64_t{9} << 20U;
constexpr std::uint64_t kKept = (std::uint64_t{3} << 20U) + 4096;

std::vector<std::byte> sevens(std::size_t size = kSize) { return std::vector<std::byte>(size, std::byte{7}); }

class GuardedMapping : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = std::filesystem::is_directory("/dev/shm") ? "/dev/shm" : testing::TempDir();
    name = join(name, "kedge-guarded-XXXXXX");
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    directory_ = name;
    mapping_ = make("file");
  }
  void TearDown() override {
    mapping_.reset();
    std::filesystem::remove_all(directory_);
  }

  std::unique_ptr<Mapping> make(const std::string& name, std::uint64_t size = kSize) const {
    const auto file = system_->create(join(directory_, name));
    file->reserve(size);
    (void)file->write_with_crc(0, sevens(size), 0);
    return file->map(size);
  }
  void truncate(const std::string& name = "file", std::uint64_t size = kKept) const {
    ASSERT_EQ(::truncate(join(directory_, name).c_str(), static_cast<off_t>(size)), 0);
  }
  static std::optional<Failure> failure_of(const std::function<void()>& call) {
    try {
      call();
    } catch (const Error& error) {
      return error.failure();
    }
    return std::nullopt;
  }

  std::string directory_;
  std::shared_ptr<FileSystem> system_ = posix_file_system();
  std::unique_ptr<Mapping> mapping_;
};

void expect(const std::optional<Failure>& failure, ErrorCode code) {
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->code, code);
  EXPECT_NE(failure->message.find("truncated by another process"), std::string::npos) << failure->message;
  EXPECT_NE(failure->path.find("/file"), std::string::npos) << failure->path;
}

TEST_F(GuardedMapping, ReadingWhatWasTruncatedIsCorrupt) {
  truncate();
  std::vector<std::byte> to(kSize);
  expect(failure_of([&] { (void)mapping_->read_with_crc(0, to, 0); }), ErrorCode::corrupt);
  EXPECT_TRUE(std::ranges::equal(std::span(to).first(kKept), sevens(kKept)));
  EXPECT_FALSE(mapping_->is_intact());
}

TEST_F(GuardedMapping, ReadingWithoutAChecksumWhatWasTruncatedIsCorrupt) {
  truncate();
  std::vector<std::byte> to(kSize);
  expect(failure_of([&] { mapping_->read(0, to); }), ErrorCode::corrupt);
}

TEST_F(GuardedMapping, TakingTheChecksumOfWhatWasTruncatedIsCorrupt) {
  truncate();
  expect(failure_of([&] { (void)mapping_->checksum(0, kSize, 0); }), ErrorCode::corrupt);
}

TEST_F(GuardedMapping, WritingWhatWasTruncatedIsAnErrorOfTheSystem) {
  truncate();
  expect(failure_of([&] { (void)mapping_->write_with_crc(0, sevens(), 0); }), ErrorCode::io);
}

TEST_F(GuardedMapping, CombiningIntoWhatWasTruncatedIsAnErrorOfTheSystem) {
  truncate();
  const auto one = sevens();
  const std::vector<std::span<const std::byte>> sources = {one, one};
  expect(failure_of([&] { (void)mapping_->write_xor(0, sources, 0); }), ErrorCode::io);
}

TEST_F(GuardedMapping, WhoeverTouchesItGetsZerosAndCanAsk) {
  truncate();
  EXPECT_TRUE(mapping_->is_intact());
  EXPECT_EQ(mapping_->bytes()[kKept - 1], std::byte{7});
  EXPECT_TRUE(mapping_->is_intact());
  EXPECT_EQ(mapping_->bytes()[kKept], std::byte{0});
  EXPECT_FALSE(mapping_->is_intact());
  EXPECT_EQ(mapping_->bytes()[kKept - 1], std::byte{7}) << "what comes before is as it was";
}

TEST_F(GuardedMapping, WhatIsWrittenThereIsLostAndErrnoStaysAsItWas) {
  truncate();
  errno = EXDEV;
  mapping_->memory()[kKept] = std::byte{1};
  EXPECT_EQ(errno, EXDEV);
  EXPECT_EQ(mapping_->bytes()[kKept], std::byte{1});
  EXPECT_FALSE(mapping_->is_intact());
  EXPECT_EQ(std::filesystem::file_size(join(directory_, "file")), kKept);
}

TEST_F(GuardedMapping, OthersStayAsTheyAre) {
  const auto before = make("before");
  const auto after = make("after");
  truncate();
  EXPECT_EQ(mapping_->bytes()[kSize - 1], std::byte{0});
  for (const auto* other : {&before, &after}) {
    EXPECT_TRUE((*other)->is_intact());
    EXPECT_EQ((*other)->checksum(0, kSize, 0), crc32c(sevens()));
  }
}

TEST_F(GuardedMapping, ThreadsThatTakeNoSignalsAreGuardedToo) {
  truncate();
  std::optional<Failure> failure;
  std::vector<std::byte> to(kSize);
  std::optional<std::thread> thread;
  {
    const ScopedSignalBlock blocked;
    thread.emplace([&] { failure = failure_of([&] { (void)mapping_->read_with_crc(0, to, 0); }); });
  }
  thread->join();
  expect(failure, ErrorCode::corrupt);
}

TEST_F(GuardedMapping, TheLastPageIsGuardedAlsoWhereTheFileEndsInIt) {
  mapping_ = make("short", 4096 + 100);
  truncate("short", 4096);
  EXPECT_EQ(mapping_->bytes()[4096 + 99], std::byte{0});
  EXPECT_FALSE(mapping_->is_intact());
}

TEST_F(GuardedMapping, AProcessThatWasForkedIsGuardedInItsOwnMemory) {
  truncate();
  const pid_t child = ::fork();
  if (child == 0) ::_exit(mapping_->bytes()[kKept] == std::byte{0} && !mapping_->is_intact() ? 0 : 1);
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(mapping_->is_intact());
}

TEST_F(GuardedMapping, PlacesInTheTableAreUsedAgain) {
  for (int i = 0; i < 5000; ++i) {
    const GuardedRange range(nullptr, 4096, Access::read);
  }
  mapping_ = make("other");
  truncate("other");
  EXPECT_EQ(mapping_->bytes()[kKept], std::byte{0});
}

// Memory that no GuardedRange stands for: SIGBUS there is the program's own.

class ForeignMemoryDeathTest : public testing::Test {
 protected:
  void SetUp() override {
    GTEST_FLAG_SET(death_test_style, "threadsafe");  // in a process of its own: handlers are installed once
  }
  /// Reads a mapping of this test's own, whose file ends before it.
  static void touch_foreign() {
    const int file = ::memfd_create("foreign", 0);
    const void* const memory = ::mmap(nullptr, 4096, PROT_READ, MAP_SHARED, file, 0);
    (void)*static_cast<const volatile std::byte*>(memory);
  }
};

extern "C" void leave(int) { ::_exit(42); }

TEST_F(ForeignMemoryDeathTest, KillsAsEver) {
  EXPECT_EXIT(
      {
        (void)std::signal(SIGBUS, SIG_DFL);  // a sanitizer has its own
        const GuardedRange range(nullptr, 4096, Access::read);
        touch_foreign();
      },
      testing::KilledBySignal(SIGBUS), "");
}

TEST_F(ForeignMemoryDeathTest, GoesToTheHandlerThatWasThereBefore) {
  EXPECT_EXIT(
      {
        (void)std::signal(SIGBUS, leave);
        const GuardedRange range(nullptr, 4096, Access::read);
        touch_foreign();
      },
      testing::ExitedWithCode(42), "");
}

extern "C" void count(int) {
  static int times = 0;
  if (++times > 1) ::_exit(43);
}

TEST_F(ForeignMemoryDeathTest, AHandlerForOneSignalIsCalledOnceAndThenItKills) {
  EXPECT_EXIT(
      {
        struct sigaction once {};
        once.sa_handler = count;
        once.sa_flags = static_cast<int>(SA_RESETHAND);
        (void)::sigaction(SIGBUS, &once, nullptr);
        const GuardedRange range(nullptr, 4096, Access::read);
        touch_foreign();
      },
      testing::KilledBySignal(SIGBUS), "");
}

TEST_F(ForeignMemoryDeathTest, WhatIsIgnoredStaysIgnoredIfItWasSent) {
  EXPECT_EXIT(
      {
        (void)std::signal(SIGBUS, SIG_IGN);
        const GuardedRange range(nullptr, 4096, Access::read);
        (void)::raise(SIGBUS);
        ::_exit(44);
      },
      testing::ExitedWithCode(44), "");
  EXPECT_EXIT(
      {
        (void)std::signal(SIGBUS, SIG_IGN);
        const GuardedRange range(nullptr, 4096, Access::read);
        touch_foreign();
      },
      testing::KilledBySignal(SIGBUS), "");
}

TEST_F(ForeignMemoryDeathTest, ASignalFromOutsideKills) {
  EXPECT_EXIT(
      {
        (void)std::signal(SIGBUS, SIG_DFL);  // a sanitizer has its own
        const GuardedRange range(nullptr, 4096, Access::read);
        (void)::raise(SIGBUS);
      },
      testing::KilledBySignal(SIGBUS), "");
}

}  // namespace
}  // namespace kedge::fs::guarded_range_test
