// Writes past the page cache: whatever the kernel answers, what is stored and what is thrown are as through the cache.
#include "fs/direct_writer.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <deque>
#include <filesystem>
#include <map>
#include <thread>

#include "base/attempt.hpp"
#include "checksum/crc32c.hpp"
#include "fs/choose_io.hpp"
#include "fs/file_system.hpp"
#include "fs/posix_file.hpp"

namespace kedge::fs::direct_writer_test {
namespace {

using testing::HasSubstr;

std::vector<std::byte> noise(std::size_t size) {
  std::vector<std::byte> bytes(size);
  std::uint32_t state = 4711;
  for (std::byte& byte : bytes) byte = static_cast<std::byte>((state = state * 1664525U + 1013904223U) >> 24U);
  return bytes;
}

/// Writes for real, but as the script says: the n-th write gets `answers[n]`, bytes or a negative errno.
class ScriptedQueue final : public IoQueue {
 public:
  struct Script {
    std::map<int, int> answers;
    std::map<int, int> refused_starts;
    int lost_at = -1;
    int started = 0;
    int under_way = 0;
    int most_under_way = 0;
  };
  explicit ScriptedQueue(Script& script) : script_(script) {}

  int start_write(unsigned slot, int descriptor, const std::byte* data, std::size_t length,
                  std::uint64_t offset) noexcept override {
    const int number = script_.started++;
    if (script_.refused_starts.contains(number)) return script_.refused_starts[number];
    pending_.push_back({slot, descriptor, data, length, offset, number});
    script_.most_under_way = std::max(script_.most_under_way, ++script_.under_way);
    return 0;
  }
  Completion wait_for_write() noexcept override {
    const Pending write = pending_.back();  // the kernel keeps no order
    pending_.pop_back();
    --script_.under_way;
    if (write.number == script_.lost_at) return {0, -EBADF, true};
    const auto answer = script_.answers.find(write.number);
    const int result = answer == script_.answers.end() ? static_cast<int>(write.length) : answer->second;
    if (result > 0) {
      const auto moved =
          ::pwrite(write.descriptor, write.data, static_cast<std::size_t>(result), static_cast<off_t>(write.offset));
      EXPECT_EQ(moved, result);
    }
    return {write.slot, result, false};
  }

 private:
  struct Pending {
    unsigned slot;
    int descriptor;
    const std::byte* data;
    std::size_t length;
    std::uint64_t offset;
    int number;
  };
  Script& script_;
  std::vector<Pending> pending_;
};

class Direct : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = join(testing::TempDir(), "kedge-direct-XXXXXX");
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    directory_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  /// A file whose direct writes go by the script; the alignment is not needed there, O_DIRECT is not used.
  [[nodiscard]] std::unique_ptr<DirectWriter> scripted() {
    return std::make_unique<DirectWriter>([this](unsigned) { return std::make_unique<ScriptedQueue>(script_); });
  }
  [[nodiscard]] std::string path(const std::string& name) const { return join(directory_, name); }
  [[nodiscard]] int open_file() {
    descriptor_ = Descriptor(::open(path("file").c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600));
    return descriptor_.get();
  }
  [[nodiscard]] std::vector<std::byte> stored(std::size_t size) {
    std::vector<std::byte> bytes(size);
    EXPECT_EQ(::pread(descriptor_.get(), bytes.data(), size, 0), static_cast<ssize_t>(size));
    return bytes;
  }

  std::string directory_;
  ScriptedQueue::Script script_;
  Descriptor descriptor_;
  std::string name_ = "/store/file";
  int rests_ = 0;
  DirectWriter::WriteRest write_rest_ = [this](std::uint64_t offset, std::span<const std::byte> bytes) {
    ++rests_;
    ASSERT_EQ(::pwrite(descriptor_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset)),
              static_cast<ssize_t>(bytes.size()));
  };
};

constexpr std::size_t kPiece = DirectWriter::kPieceBytes;

TEST_F(Direct, EveryByteArrivesWhateverTheKernelTakes) {
  const auto bytes = noise(21 * kPiece + std::size_t{3} * 4096);
  const std::map<std::string, std::map<int, int>> cases = {
      {"all of it", {}},
      {"short, in whole blocks", {{0, 4096}, {7, 8192}, {21, 4096}}},
      {"short, in the middle of a block", {{1, 1}, {5, 100'001}}},
      {"nothing", {{3, 0}, {21, 0}}},
      {"not in this form", {{0, -EINVAL}, {9, -EOPNOTSUPP}}},
      {"not now", {{2, -EAGAIN}, {4, -EINTR}}},
  };
  for (const auto& [what, answers] : cases) {
    script_ = {};
    script_.answers = answers;
    rests_ = 0;
    const int file = open_file();
    const auto crc = scripted()->write({file, name_, write_rest_}, 0, bytes, 5);
    EXPECT_EQ(crc, crc32c(bytes, 5)) << what;
    EXPECT_TRUE(stored(bytes.size()) == bytes) << what;
    EXPECT_EQ(rests_, static_cast<int>(answers.size())) << what;
    EXPECT_EQ(script_.under_way, 0);
    EXPECT_EQ(script_.most_under_way, static_cast<int>(DirectWriter::kDepth));
  }
}

TEST_F(Direct, AStartThatIsRefusedGoesTheOrdinaryWay) {
  const auto bytes = noise(3 * kPiece);
  script_.refused_starts = {{1, EBUSY}};
  const int file = open_file();
  EXPECT_EQ(scripted()->write({file, name_, write_rest_}, 0, bytes, 0), crc32c(bytes));
  EXPECT_TRUE(stored(bytes.size()) == bytes);
  EXPECT_EQ(rests_, 1);
}

TEST_F(Direct, AnErrorIsThrownAsThroughTheCacheOnceNothingIsUnderWay) {
  const auto bytes = noise(20 * kPiece);
  for (const auto& [error, code] : {std::pair(EIO, ErrorCode::io), std::pair(ENOSPC, ErrorCode::no_space),
                                    std::pair(EDQUOT, ErrorCode::no_space)}) {
    for (const int n : {0, 6, 13, 19}) {
      script_ = {};
      script_.answers = {{n, -error}};
      const auto writer = scripted();
      const int file = open_file();
      const auto failure = attempt([&] { (void)writer->write({file, name_, write_rest_}, 0, bytes, 0); });
      ASSERT_TRUE(failure) << n;
      EXPECT_EQ(failure->code, code);
      EXPECT_EQ(failure->system_errno, error);
      EXPECT_EQ(failure->path, name_);
      EXPECT_EQ(script_.under_way, 0) << "a buffer is given back while it is read";
      script_.answers.clear();  // the next write finds everything in order
      EXPECT_EQ(writer->write({file, name_, write_rest_}, 0, bytes, 0), crc32c(bytes));
    }
  }
}

TEST_F(Direct, AnErrorOfTheRestIsThrownOnceNothingIsUnderWay) {
  const auto bytes = noise(20 * kPiece);
  script_.answers = {{4, 4096}};
  const DirectWriter::WriteRest full = [](std::uint64_t, std::span<const std::byte>) {
    throw Error(ErrorCode::no_space, "full");
  };
  const auto writer = scripted();
  const int file = open_file();
  EXPECT_THROW((void)writer->write({file, name_, full}, 0, bytes, 0), Error);
  EXPECT_EQ(script_.under_way, 0);
}

TEST_F(Direct, AQueueThatFailsIsNotUsedAgain) {
  const auto bytes = noise(20 * kPiece);
  script_.lost_at = 5;
  int made = 0;
  DirectWriter writer([&](unsigned) {
    ++made;
    return std::make_unique<ScriptedQueue>(script_);
  });
  const int file = open_file();
  const auto failure = attempt([&] { (void)writer.write({file, name_, write_rest_}, 0, bytes, 0); });
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->system_errno, EBADF);
  script_ = {};
  EXPECT_EQ(writer.write({file, name_, write_rest_}, 0, bytes, 0), crc32c(bytes));
  EXPECT_EQ(made, 2);
}

TEST_F(Direct, WithoutAQueueNothingIsWrittenAndTheReasonIsKnown) {
  int asked = 0;
  DirectWriter writer([&](unsigned) {
    ++asked;
    errno = EPERM;
    return std::unique_ptr<IoQueue>();
  });
  const auto bytes = noise(4 * kPiece);
  const int file = open_file();
  for (int i = 0; i < 2; ++i) EXPECT_FALSE(writer.write({file, name_, write_rest_}, 0, bytes, 0));
  EXPECT_EQ(writer.refusal_errno(), EPERM);
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(std::filesystem::file_size(path("file")), 0U);
}

// --- the real file system

TEST_F(Direct, FilesWrittenDirectlyHoldTheSameBytesAtEveryAlignment) {
  const auto system = posix_file_system();
  const auto bytes = noise((std::size_t{9} << 20U) + 12'345);
  const auto file = system->create(path("real"));
  (void)file->enable_direct_writes();  // may be refused: then this is the ordinary way
  file->reserve(std::uint64_t{16} << 20U);
  for (const std::uint64_t offset : {0U, 1U, 4095U, 4096U, 4097U, 1'234'567U}) {
    for (const std::size_t size : {std::size_t{1} << 20U, (std::size_t{1} << 20U) + 1, bytes.size()}) {
      const auto part = std::span(bytes).first(size);
      EXPECT_EQ(file->write_with_crc(offset, part, 9), crc32c(part, 9));
      // Small neighbours, through the cache, in the pages at both ends.
      const std::byte mark{0x77};
      if (offset != 0) (void)file->write_with_crc(offset - 1, std::span(&mark, 1), 0);
      (void)file->write_with_crc(offset + size, std::span(&mark, 1), 0);
      std::vector<std::byte> back(size + 1);
      (void)file->read_with_crc(offset, back, 0);
      EXPECT_EQ(back.back(), mark) << offset << " " << size;
      back.pop_back();
      EXPECT_TRUE(std::ranges::equal(back, part)) << offset << " " << size;
    }
  }
  file->sync();
}

TEST_F(Direct, SeveralThreadsWriteOneFile) {
  const auto system = posix_file_system();
  constexpr std::size_t kShare = (std::size_t{4} << 20U) + 4096 + 17;
  const auto bytes = noise(4 * kShare);
  const auto file = system->create(path("shared"));
  (void)file->enable_direct_writes();
  file->reserve(bytes.size());
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < 4; ++i) {
      threads.emplace_back(
          [&, i] { (void)file->write_with_crc(i * kShare, std::span(bytes).subspan(i * kShare, kShare), 0); });
    }
  }
  EXPECT_EQ(file->checksum(0, bytes.size(), 0), crc32c(bytes));
}

TEST_F(Direct, WhereTheFilesystemHasNoDirectWayAllStaysAsItIs) {
  if (!std::filesystem::is_directory("/dev/shm")) GTEST_SKIP() << "no /dev/shm here";
  const auto system = posix_file_system();
  const auto file = system->create(join("/dev/shm", "kedge-direct-" + std::to_string(::getpid())));
  ASSERT_NE(file, nullptr);
  system->remove(file->path());
  (void)file->enable_direct_writes();  // tmpfs: refused before Linux 6.6, and through the cache all the same after
  const auto bytes = noise(std::size_t{2} << 20U);
  EXPECT_EQ(file->write_with_crc(3, bytes, 0), crc32c(bytes));
  EXPECT_EQ(file->checksum(3, bytes.size(), 0), crc32c(bytes));
}

TEST_F(Direct, AFileOpenedForReadingHasNoDirectWay) {
  const auto system = posix_file_system();
  (void)system->create(path("read"));
  EXPECT_FALSE(system->open(path("read"), Access::read)->enable_direct_writes());
}

TEST_F(Direct, TheProbeLeavesNothingAndSaysWhatItMeasured) {
  const auto system = posix_file_system();
  for (const auto storage : {ProbeTarget::Storage::recycled, ProbeTarget::Storage::fresh}) {
    const WriteProbe probe = system->probe_writes({directory_, "probe", storage});
    EXPECT_TRUE(system->list(directory_).empty());
    if (probe.refusal.empty()) {
      EXPECT_GT(probe.buffered_bytes_per_s, 0);
      EXPECT_GT(probe.direct_bytes_per_s, 0);
    } else {
      EXPECT_EQ(probe.direct_bytes_per_s, 0) << probe.refusal;
    }
  }
}

TEST_F(Direct, TheProbeTellsWhyThereIsNoDirectWay) {
  const auto system = posix_file_system();
  const auto refusing = std::make_shared<DirectWriter>([](unsigned) {
    errno = EPERM;
    return std::unique_ptr<IoQueue>();
  });
  (void)refusing->write({-1, name_, write_rest_}, 0, noise(4096), 0);
  const WriteProbe probe = probe_writes(*system, {directory_, "probe"}, *refusing);
  EXPECT_EQ(probe.direct_bytes_per_s, 0);
  EXPECT_THAT(probe.refusal, HasSubstr("io_uring: Operation not permitted"));
}

}  // namespace
}  // namespace kedge::fs::direct_writer_test
