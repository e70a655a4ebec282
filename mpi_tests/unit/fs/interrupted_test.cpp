// What filesystems in user space, sandboxes and signals do to calls of the system (interrupted, without fallocate,
// without numbers of space, links that lead nowhere): this program's own calls stand before those of libc, for the
// libraries too.
#include <gtest/gtest.h>

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <span>
#include <vector>

#include "base/text.hpp"
#include "fs/file_system.hpp"
#include "kedge/error.hpp"

namespace {

// One thread of one test at a time sets them.
int fallocate_error = 0;
int interrupt_every = 0;
int directory_calls = 0;
bool space_is_unknown = false;

template <class Call>
Call next_called(const char* name) {
  return reinterpret_cast<Call>(::dlsym(RTLD_NEXT, name));  // NOLINT: how dlsym is meant
}

bool is_interrupted() { return interrupt_every != 0 && ++directory_calls % interrupt_every == 0; }

}  // namespace

extern "C" {

int fallocate(int descriptor, int mode, off_t offset, off_t length) {
  if (fallocate_error != 0) return errno = fallocate_error, -1;
  return next_called<int (*)(int, int, off_t, off_t)>("fallocate")(descriptor, mode, offset, length);
}

DIR* opendir(const char* path) {
  if (is_interrupted()) return errno = EINTR, nullptr;
  return next_called<DIR* (*)(const char*)>("opendir")(path);
}

dirent* readdir(DIR* directory) {
  if (is_interrupted()) return errno = EINTR, nullptr;
  return next_called<dirent* (*)(DIR*)>("readdir")(directory);
}

int statvfs(const char* path, struct statvfs* found) noexcept {
  const int result = next_called<int (*)(const char*, struct statvfs*)>("statvfs")(path, found);
  if (space_is_unknown) found->f_blocks = found->f_bfree = found->f_bavail = found->f_files = found->f_favail = 0;
  return result;
}
}

namespace kedge::interrupted_test {
namespace {

struct Interrupted : testing::Test {
  void SetUp() override { std::filesystem::create_directories(directory); }
  void TearDown() override {
    fallocate_error = interrupt_every = directory_calls = 0;
    space_is_unknown = false;
    std::filesystem::remove_all(directory);
  }
  std::string directory = testing::TempDir() + "kedge-interrupted-" + std::to_string(::getpid());
  std::shared_ptr<fs::FileSystem> system = fs::posix_file_system();
};

TEST_F(Interrupted, FilesAreReservedWhereFallocateIsNotThere) {
  for (const int error : {EOPNOTSUPP, ENOSYS, EINVAL}) {
    SCOPED_TRACE(error);
    fallocate_error = error;
    const auto file = system->create(directory + "/" + std::to_string(error), 0600);
    ASSERT_TRUE(file);
    (void)file->reserve(100'000);
    EXPECT_EQ(file->status().size_bytes, 100'000U);
    EXPECT_GE(file->status().allocated_bytes, 100'000U) << "a hole: the space may be gone when it is written";
  }
  fallocate_error = ENOSPC;
  const auto file = system->create(directory + "/full", 0600);
  EXPECT_THROW((void)file->reserve(100'000), Error);
}

TEST_F(Interrupted, ASignalInAListingIsNoError) {
  std::vector<std::string> names;
  for (char c = 'a'; c <= 'g'; ++c) {
    names.emplace_back(1, c);
    ASSERT_TRUE(system->create(directory + "/" + names.back(), 0600));
  }
  for (interrupt_every = 11; interrupt_every < 40; ++interrupt_every) {
    EXPECT_EQ(system->list(directory), names) << "every " << interrupt_every;
    EXPECT_EQ(system->list(directory), names) << "every " << interrupt_every;
  }
  interrupt_every = 1;
  EXPECT_THROW((void)system->list(directory), Error) << "without an end";
}

TEST_F(Interrupted, SpaceThatAFilesystemDoesNotTellIsNotFull) {
  space_is_unknown = true;
  const fs::Space space = system->space(directory);
  EXPECT_GT(space.free_bytes, std::uint64_t{1} << 60U);
  EXPECT_GT(space.free_inodes, std::uint64_t{1} << 60U);
}

TEST_F(Interrupted, ALinkThatLeadsNowhereIsNamed) {
  std::filesystem::create_symlink("gone/run-7", directory + "/checkpoints");
  for (const std::string below : {"", "/a/b"}) {
    try {
      (void)system->canonical(directory + "/checkpoints" + below);
      ADD_FAILURE() << "was resolved";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::not_found);
      EXPECT_NE(error.failure().message.find("checkpoints is a symbolic link to gone/run-7, which does not exist"),
                std::string::npos)
          << error.what();
    }
  }
}

}  // namespace
}  // namespace kedge::interrupted_test
