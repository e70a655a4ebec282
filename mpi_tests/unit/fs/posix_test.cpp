// System calls that fail now and then, limits on files, every memory cgroup, pages that can be dropped, real locks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "base/text.hpp"
#include "checksum/crc32c.hpp"
#include "fs/file_system.hpp"
#include "fs/posix_space.hpp"
#include "fs/transfer.hpp"
#include "kedge/error.hpp"

namespace kedge::fs::posix_test {
namespace {

using testing::HasSubstr;

class Posix : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = join(testing::TempDir(), "kedge-fs-posix-XXXXXX");
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    directory_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }
  std::string path(std::string_view name) const { return join(directory_, name); }

  std::string directory_;
  std::shared_ptr<FileSystem> system_ = posix_file_system();
};

/// Takes the mount away again, whatever the test came to.
struct Unmount {
  std::string path;
  ~Unmount() { ::umount2(path.c_str(), MNT_DETACH); }
};

/// Scripted results of a system call: bytes, 0, or a negative errno; each is asked at most once.
class Script {
 public:
  explicit Script(std::vector<int> steps) : steps_(std::move(steps)) {}
  ssize_t operator()(std::size_t done, std::size_t left) {
    asked_.emplace_back(done, left);
    const int step = steps_.at(asked_.size() - 1);
    if (step >= 0) return step;
    errno = -step;
    return -1;
  }
  const std::vector<std::pair<std::size_t, std::size_t>>& asked() const { return asked_; }

 private:
  std::vector<int> steps_;
  std::vector<std::pair<std::size_t, std::size_t>> asked_;
};

/// In a child, whose limit it is. 0: every way of growing a file failed with no_space and the process lives.
int try_to_exceed(FileSystem& system, const std::string& path, bool directly) {
  constexpr rlimit kLimit{1U << 20U, 1U << 20U};
  if (::setrlimit(RLIMIT_FSIZE, &kLimit) != 0) return 1;
  const std::vector<std::byte> much(std::size_t{4} << 20U);
  const auto file = system.create(path);
  if (directly) (void)file->enable_direct_writes();
  int exceeded = 0;
  const auto attempt_one = [&](const auto& grow) {
    try {
      grow();
      ++exceeded;
    } catch (const Error& error) {
      if (error.code() != ErrorCode::no_space || error.failure().system_errno != EFBIG) exceeded += 10;
    }
  };
  attempt_one([&] { (void)file->write_with_crc(0, much, 0); });
  attempt_one([&] { file->truncate(much.size()); });
  attempt_one([&] { (void)file->reserve(much.size()); });
  constexpr rlimit kNothing{0, 0};
  if (::setrlimit(RLIMIT_FSIZE, &kNothing) != 0) return 1;
  const auto lock = system.try_lock(path + ".lock", "who");  // needs no space, and is seen without its text
  const pid_t other = ::fork();
  if (other == 0) ::_exit(system.lock_holder(path + ".lock") == compose("process {}", ::getppid()) ? 0 : 1);
  int status = -1;
  if (!lock || ::waitpid(other, &status, 0) != other || status != 0) return 5;
  sigset_t pending;
  ::sigpending(&pending);
  if (sigismember(&pending, SIGXFSZ) != 0) return 2;
  sigset_t blocked;
  ::pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
  if (sigismember(&blocked, SIGXFSZ) != 0) return 3;
  return exceeded == 0 ? 0 : 4;
}

TEST_F(Posix, AFileThatWouldExceedTheLimitIsAnErrorAndNoSignal) {
  std::vector<std::string> places = {path("on-disk")};
  if (::access("/dev/shm", W_OK) == 0) places.push_back(compose("/dev/shm/kedge-limit-test-{}", ::getpid()));
  for (const std::string& place : places) {
    for (const bool directly : {false, true}) {
      const pid_t child = ::fork();
      ASSERT_GE(child, 0);
      if (child == 0) ::_exit(try_to_exceed(*system_, place, directly));
      int status = 0;
      ASSERT_EQ(::waitpid(child, &status, 0), child);
      for (const char* end : {"", ".lock"}) system_->remove(place + end);
      EXPECT_TRUE(WIFEXITED(status)) << place << ": signal " << WTERMSIG(status);
      EXPECT_EQ(WEXITSTATUS(status), 0) << place << (directly ? ", directly" : "");
    }
  }
}

TEST(Transfer, ContinuesShortMovesAndRetriesInterruptedOnes) {
  Script script({-EINTR, 3, -EINTR, -EINTR, 1, 6});
  const auto result = transfer_all(10, std::ref(script));
  EXPECT_EQ(result.bytes, 10U);
  EXPECT_EQ(result.error, 0);
  ASSERT_EQ(script.asked().size(), 6U);
  EXPECT_EQ(script.asked()[2], (std::pair<std::size_t, std::size_t>{3, 7}));
  EXPECT_EQ(script.asked()[5], (std::pair<std::size_t, std::size_t>{4, 6}));
}

TEST(Transfer, StopsAtAnErrorAndSaysHowFarItCame) {
  Script script({4, -EIO});
  const auto result = transfer_all(10, std::ref(script));
  EXPECT_EQ(result.bytes, 4U);
  EXPECT_EQ(result.error, EIO);
}

TEST(Transfer, StopsAtTheEndWithoutAnError) {
  Script script({4, 0});
  const auto result = transfer_all(10, std::ref(script));
  EXPECT_EQ(result.bytes, 4U);
  EXPECT_EQ(result.error, 0);
  Script none({});
  EXPECT_EQ(transfer_all(0, std::ref(none)).bytes, 0U);
}

TEST(Transfer, InterruptedCallsAreRepeated) {
  int calls = 0;
  const int result = retry_interrupted([&] {
    errno = ++calls < 3 ? EINTR : EBADF;
    return -1;
  });
  EXPECT_EQ(result, -1);
  EXPECT_EQ(calls, 3);
  EXPECT_EQ(errno, EBADF);
}

TEST_F(Posix, APlantedPipeNeitherHangsNorOpens) {
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  EXPECT_THROW((void)system_->open(path("pipe"), Access::read), Error);
  EXPECT_THROW((void)system_->open(path("pipe"), Access::read_write), Error);
  EXPECT_THROW((void)system_->try_lock(path("pipe"), "me"), Error);
}

TEST_F(Posix, AHoleInMemoryIsNotMapped) {
  std::string name = "/dev/shm/kedge-fs-hole-XXXXXX";
  if (::mkdtemp(name.data()) == nullptr) GTEST_SKIP() << "no /dev/shm here";
  const auto file = system_->create(join(name, "a"));
  file->truncate(1U << 20U);
  std::optional<ErrorCode> code;
  try {
    (void)file->map(1U << 20U);
  } catch (const Error& error) {
    code = error.code();
  }
  EXPECT_EQ(code, ErrorCode::bad_state);
  file->reserve(1U << 20U);
  EXPECT_NO_THROW((void)file->map(1U << 20U));
  // Also one that comes before what a growing file asks for anew.
  file->truncate(3U << 20U);
  file->reserve(4U << 20U);
  EXPECT_NO_THROW((void)file->map(4U << 20U));
  std::filesystem::remove_all(name);
}

TEST_F(Posix, AFullMemoryStoreIsAnErrorAndGivesBackWhatItTook) {
  ASSERT_EQ(::mkdir(path("small").c_str(), 0700), 0);
  if (::mount("tmpfs", path("small").c_str(), "tmpfs", 0, "size=4m,nr_inodes=4") != 0) {
    GTEST_SKIP() << "a tmpfs cannot be mounted here: " << std::generic_category().message(errno);
  }
  const Unmount unmount{path("small")};
  {
    const Space space = system_->space(path("small"));
    EXPECT_TRUE(space.memory_backed);
    EXPECT_EQ(space.free_bytes, 4U << 20U);
    EXPECT_EQ(space.limit, "filesystem");
    const auto file = system_->create(path("small/a"));
    file->reserve(1U << 20U);
    std::optional<Failure> failure;
    try {
      file->reserve(8U << 20U);
    } catch (const Error& error) {
      failure = error.failure();
    }
    ASSERT_TRUE(failure);
    EXPECT_EQ(failure->code, ErrorCode::no_space);
    EXPECT_EQ(failure->system_errno, ENOSPC);
    EXPECT_EQ(file->status().size_bytes, 1U << 20U);
    EXPECT_EQ(system_->space(path("small")).free_bytes, 3U << 20U);
    EXPECT_NE(system_->create(path("small/b")), nullptr);
    EXPECT_NE(system_->create(path("small/c")), nullptr);
    EXPECT_EQ(system_->space(path("small")).free_inodes, 0U);
    EXPECT_THROW((void)system_->create(path("small/d")), Error);
  }
}

TEST_F(Posix, WithoutFallocateZerosAreWritten) {
  ASSERT_EQ(::mkdir(path("plain").c_str(), 0700), 0);
  if (::mount("ramfs", path("plain").c_str(), "ramfs", 0, nullptr) != 0) {  // ramfs knows no fallocate
    GTEST_SKIP() << "a ramfs cannot be mounted here: " << std::generic_category().message(errno);
  }
  const Unmount unmount{path("plain")};
  {
    const auto file = system_->create(path("plain/a"));
    const std::vector<std::byte> bytes(5000, std::byte{7});
    const auto crc = file->write_with_crc(0, bytes, 0);
    constexpr std::size_t kSize = (std::size_t{5} << 20U) + 1;
    file->reserve(kSize);
    EXPECT_EQ(file->status().size_bytes, kSize);
    EXPECT_EQ(file->checksum(0, kSize, 0), crc32c_zeros(kSize - bytes.size(), crc));
    struct stat info {};
    ASSERT_EQ(::stat(path("plain/a").c_str(), &info), 0);
    EXPECT_GE(static_cast<std::size_t>(info.st_blocks) * 512, kSize);
    EXPECT_TRUE(system_->space(path("plain")).memory_backed);
    EXPECT_NE(system_->space(path("plain")).limit, "filesystem");
  }
}

/// Runs `body` in a forked child and gives its exit status; 255 if it threw.
template <class Body>
int in_child(Body&& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    int result = 255;
    try {
      result = body();
    } catch (const std::exception&) {
      result = 255;
    }
    ::_exit(result);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST_F(Posix, TwoFileSystemObjectsOfOneProcessSeeEachOthersLocks) {
  const auto second = posix_file_system();
  auto lock = system_->try_lock(path("lock"), "first engine");
  ASSERT_NE(lock, nullptr);
  EXPECT_EQ(second->lock_holder(path("lock")), "first engine");
  EXPECT_EQ(second->try_lock(path("lock"), "second engine"), nullptr);
  EXPECT_EQ(in_child([&] { return posix_file_system()->try_lock(path("lock"), "child") == nullptr ? 0 : 1; }), 0)
      << "asking has dropped the lock";
  lock.reset();
  EXPECT_EQ(second->lock_holder(path("lock")), std::nullopt);
}

TEST_F(Posix, AnotherProcessIsRefusedAndToldWhoHoldsTheLock) {
  auto lock = system_->try_lock(path("lock"), "incarnation 7 on node-a");
  ASSERT_NE(lock, nullptr);
  const auto other = [&](FileSystem& system) {
    if (system.try_lock(path("lock"), "child") != nullptr) return 1;
    return system.lock_holder(path("lock")) == "incarnation 7 on node-a" ? 0 : 2;
  };
  EXPECT_EQ(in_child([&] { return other(*posix_file_system()); }), 0);
  EXPECT_EQ(in_child([&] { return other(*system_); }), 0);  // the parent's object, as a data loader has it
  EXPECT_EQ(in_child([&] { return other(*system_); }), 0);  // and the child before has not dropped the lock
  EXPECT_EQ(in_child([&] {
              lock.reset();  // a child that closes what it inherited does not free it either
              return 0;
            }),
            0);
  EXPECT_EQ(in_child([&] { return other(*posix_file_system()); }), 0);
  lock.reset();
  EXPECT_EQ(in_child([&] { return system_->try_lock(path("lock"), "child") != nullptr ? 0 : 1; }), 0);
  EXPECT_EQ(system_->lock_holder(path("lock")), std::nullopt);
}

TEST_F(Posix, AKilledProcessLosesItsLock) {
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const auto lock = posix_file_system()->try_lock(path("lock"), "child");
    const char said = lock ? 'y' : 'n';
    if (::write(ready[1], &said, 1) == 1) ::pause();
    ::_exit(1);
  }
  char said = 0;
  ASSERT_EQ(::read(ready[0], &said, 1), 1);
  EXPECT_EQ(said, 'y');
  EXPECT_EQ(system_->try_lock(path("lock"), "parent"), nullptr);
  EXPECT_EQ(system_->lock_holder(path("lock")), "child");
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  ::close(ready[0]);
  ::close(ready[1]);
  EXPECT_EQ(system_->lock_holder(path("lock")), std::nullopt);
  EXPECT_NE(system_->try_lock(path("lock"), "parent"), nullptr);
}

class Cgroups : public Posix {
 protected:
  void put(const std::string& name, const std::string& text) const {
    const std::string target = path(name);
    std::filesystem::create_directories(std::filesystem::path(target).parent_path());
    std::ofstream(target) << text;
  }
};

TEST_F(Cgroups, Version2TakesTheTightestOnTheWayUp) {
  put("job/step/memory.max", "max\n");
  put("job/step/memory.current", "10\n");
  put("job/memory.max", "1000000\n");
  put("job/memory.current", "744000\n");
  put("memory.max", "5000000\n");
  put("memory.current", "744000\n");
  const auto space_limits = cgroup_limits("0::/job/step\n", directory_);
  ASSERT_EQ(space_limits.size(), 2U) << "two have a limit";
  EXPECT_EQ(space_limits[0].free_bytes, 254'000U) << "a 128th is for what the kernel charges beside the pages";
  EXPECT_THAT(space_limits[0].limit, HasSubstr("job/memory.max: 976.6 KiB"));
  EXPECT_THAT(space_limits[1].limit, Not(HasSubstr("job")));
  EXPECT_NE(space_limits[0].id, space_limits[1].id);
  EXPECT_EQ(space_limits[0].id, cgroup_limits("0::/job\n", directory_).at(0).id) << "the same limit, from another step";
}

TEST_F(Cgroups, PagesThatTheKernelWouldDropAreFreeAndUnwrittenOnesAreNot) {
  put("job/memory.max", "1000000\n");
  put("job/memory.current", "1000000\n");
  const auto room = [&](const std::string& stat) {
    put("job/memory.stat", stat);
    return cgroup_limits("0::/job\n", directory_).at(0).free_bytes;
  };
  EXPECT_EQ(room("anon 600000\nfile 300000\nshmem 300000\n"), 0U);
  EXPECT_EQ(room("inactive_file 12800\nactive_file 0\n"), 12'700U);
  EXPECT_EQ(room("inactive_file 0\nactive_file 12800\n"), 12'700U) << "also what was used recently";
  EXPECT_EQ(room("inactive_file 64000\nactive_file 64000\nfile_dirty 64000\nfile_writeback 51200\n"), 12'700U);
  EXPECT_EQ(room("inactive_file 100\nfile_dirty 200\n"), 0U) << "the numbers are not of one moment";
}

TEST_F(Cgroups, WhereProcessesAreSlowedDownIsALimitToo) {
  put("job/memory.max", "1000000\n");
  put("job/memory.high", "500000\n");
  put("job/memory.current", "372000\n");
  const auto space_limits = cgroup_limits("0::/job\n", directory_);
  ASSERT_EQ(space_limits.size(), 1U);
  EXPECT_EQ(space_limits[0].free_bytes, 127'000U);
  EXPECT_THAT(space_limits[0].limit, HasSubstr("job/memory.high"));
}

TEST_F(Cgroups, Version1IsReadToo) {
  put("memory/job/memory.limit_in_bytes", "1000000\n");
  put("memory/job/memory.usage_in_bytes", "1200000\n");
  put("memory/job/memory.stat",
      "inactive_file 900000\ntotal_inactive_file 200000\ntotal_active_file 156000\n"
      "total_dirty 50000\ntotal_writeback 50000\n");
  const auto space_limits = cgroup_limits("5:cpu,cpuacct:/\n4:memory:/job/not/mounted/here\n", directory_);
  ASSERT_EQ(space_limits.size(), 1U);
  EXPECT_EQ(space_limits[0].free_bytes, 55'563U) << "with the groups below, of which only the totals tell";
  EXPECT_TRUE(cgroup_limits("3:cpu:/job\n", directory_).empty());
}

TEST_F(Cgroups, Version1SaysWhatLimitsGroupsThatCannotBeSeen) {
  put("memory/memory.limit_in_bytes", "9223372036854771712\n");
  put("memory/memory.usage_in_bytes", "872000\n");
  put("memory/memory.stat", "hierarchical_memory_limit 1000000\n");
  const auto space_limits = cgroup_limits("4:memory:/docker/1234\n", directory_);
  ASSERT_EQ(space_limits.size(), 1U);
  EXPECT_EQ(space_limits[0].free_bytes, 127'000U);
  EXPECT_THAT(space_limits[0].limit, HasSubstr("memory.stat"));
}

TEST_F(Cgroups, NoLimitIsNoRoom) {
  EXPECT_TRUE(cgroup_limits("0::/job\n", directory_).empty());
  EXPECT_TRUE(cgroup_limits("", directory_).empty());
  EXPECT_TRUE(cgroup_limits("nonsense\n::\n", directory_).empty());
  put("memory/memory.limit_in_bytes", "9223372036854771712\n");
  put("memory/memory.usage_in_bytes", "100\n");
  EXPECT_TRUE(cgroup_limits("4:memory:/\n", directory_).empty());
}

TEST(Machine, AvailableMemoryIsRead) {
  const auto room = machine_limit("MemTotal:       100 kB\nMemAvailable:    42 kB\n");
  ASSERT_TRUE(room);
  EXPECT_EQ(room->free_bytes, 42U * 1024);
  EXPECT_FALSE(machine_limit("MemTotal: 100 kB\n"));
}

}  // namespace
}  // namespace kedge::fs::posix_test
