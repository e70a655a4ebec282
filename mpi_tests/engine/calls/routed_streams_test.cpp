// How routed files pass: in pieces, and refused if they change on the way.
#include <gmock/gmock.h>

#include <atomic>
#include <functional>

#include "harness/forwarding_file_system.hpp"
#include "harness/routed_checks.hpp"

namespace kedge::faults::routed_streams_test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

/// What routed files are read and written with.
class WatchedFile final : public ForwardingFile {
 public:
  WatchedFile(std::unique_ptr<fs::File> inner, std::atomic<std::uint64_t>& largest, std::function<void()> on_read)
      : ForwardingFile(std::move(inner)), largest_(largest), on_read_(std::move(on_read)) {}

  std::uint32_t write_with_crc(std::uint64_t offset, std::span<const std::byte> bytes, std::uint32_t crc) override {
    note(bytes.size());
    return ForwardingFile::write_with_crc(offset, bytes, crc);
  }
  std::uint32_t read_with_crc(std::uint64_t offset, std::span<std::byte> bytes, std::uint32_t crc) override {
    note(bytes.size());
    if (on_read_) on_read_();
    return ForwardingFile::read_with_crc(offset, bytes, crc);
  }
  std::unique_ptr<fs::Mapping> map(std::uint64_t size_bytes) override {
    note(size_bytes);
    return ForwardingFile::map(size_bytes);
  }

 private:
  void note(std::uint64_t bytes) {
    if (bytes > largest_) largest_ = bytes;
  }
  std::atomic<std::uint64_t>& largest_;
  std::function<void()> on_read_;
};

class WatchedFileSystem final : public ForwardingFileSystem {
 public:
  WatchedFileSystem(std::shared_ptr<fs::FileSystem> inner, std::atomic<std::uint64_t>& largest,
                    std::function<void(const std::string& path)> on_read = {})
      : ForwardingFileSystem(std::move(inner)), largest_(largest), on_read_(std::move(on_read)) {}

  std::unique_ptr<fs::File> open(const std::string& path, fs::Access access) override {
    return watched(inner().open(path, access), path);
  }
  std::unique_ptr<fs::File> create(const std::string& path, std::uint32_t mode) override {
    return watched(inner().create(path, mode), path);
  }

 private:
  std::unique_ptr<fs::File> watched(std::unique_ptr<fs::File> file, const std::string& path) {
    if (path.find("/routed-") == std::string::npos) return file;
    std::function<void()> on_read;
    if (on_read_) on_read = [this, path] { on_read_(path); };
    return std::make_unique<WatchedFile>(std::move(file), largest_, std::move(on_read));
  }
  std::atomic<std::uint64_t>& largest_;
  std::function<void(const std::string& path)> on_read_;
};

TEST(RoutedStreams, LargeFilesAreStreamedInBothDirections) {
  constexpr std::uint64_t kPieceMax = std::uint64_t{4} << 20U;
  for (const bool memory : {true, false}) {
    SimulatedJob job(1, memory ? SimulatedJob::memory_disk() : SimulatedJob::block_disk());
    std::atomic<std::uint64_t> largest = 0;
    job.surroundings = [&](int, start::Environment& environment) {
      environment.file_system = std::make_shared<WatchedFileSystem>(environment.file_system, largest);
    };
    const auto content = content_of(5, 37'000'001);
    on_one_rank(job, [&](Engine& engine) {
      engine.create("a");
      job.disk.write_all(engine.route_out("large").path, content);
      engine.commit();
      EXPECT_GT(largest.exchange(0), 0U);
      EXPECT_LE(largest, kPieceMax);
      EXPECT_EQ(engine.open(), "a");
      EXPECT_EQ(job.disk.read_all(engine.route_in("large").path), content);
      EXPECT_GT(largest, 0U);
      EXPECT_LE(largest, kPieceMax);
      engine.close();
    });
  }
}

/// A writer that was not closed, e.g. of another thread: what it had at that moment is no file of the application's.
TEST(RoutedStreams, AFileThatChangesWhileItIsTakenInIsRefused) {
  for (const std::size_t becomes : {std::size_t{100}, std::size_t{9'000'000}}) {
    SimulatedJob job(2);
    std::atomic<std::uint64_t> largest = 0;
    std::atomic<bool> torn = false;
    job.surroundings = [&](int rank, start::Environment& environment) {
      if (rank == 0) return;
      environment.file_system =
          std::make_shared<WatchedFileSystem>(environment.file_system, largest, [&](const std::string& path) {
            if (!torn.exchange(true)) job.disk.write_all(path, content_of(0, becomes));
          });
    };
    OnEachRank thrown(2);
    expect_returned(job.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      engine.create("a");
      job.disk.write_all(engine.route_out("file").path, content_of(0, 8'000'000));
      thrown.put(scope.rank, failure_of([&] { engine.commit(); }));
      scope.communicator.barrier(Deadline::never());
      EXPECT_THAT(routed_files(job.disk), IsEmpty());
    }));
    ASSERT_TRUE(thrown.same());
    EXPECT_EQ(thrown.same()->code, ErrorCode::invalid_argument);
    EXPECT_THAT(thrown.same()->message, HasSubstr("changed while commit stored it"));
  }
}

}  // namespace
}  // namespace kedge::faults::routed_streams_test
