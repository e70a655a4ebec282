// Containers from no byte to 1 GiB in one set: protected, members lost and rebuilt, and written over by other sizes,
// so that recycled files and parity grow and shrink.
#include <gtest/gtest.h>
#include <mpi.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#include "collective/shared_directory.hpp"
#include "harness/simulated_nodes.hpp"
#include "kedge/kedge.hpp"
#include "kedge/mpi.hpp"

namespace kedge::uneven_sizes_test {
namespace {

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30U;
constexpr std::uint64_t kNeededBytes = 8 * kGiB;  // two commits and their parity, and what the ranks hold
constexpr int kRanks = 4;
constexpr std::array<std::uint64_t, kRanks> kSizes = {kGiB, 0, 1, 100'000'003};

struct Case {
  Scheme scheme;
  std::uint32_t parity;
};

/// Bytes that depend on their place, the rank and the round, in memory that is used again: where a virtual machine
/// gives free pages back to its host, new ones are what takes the time.
class Content {
 public:
  Content(std::uint64_t size_bytes, int rank, int round, std::vector<std::uint64_t>& memory)
      : size_bytes_(size_bytes),
        seed_((static_cast<std::uint64_t>(rank) << 40U) + (static_cast<std::uint64_t>(round) << 32U)) {
    const std::size_t words = size_bytes / sizeof(std::uint64_t) + 1;
    if (memory.size() < words) memory.resize(words);
    words_ = std::span(memory).first(words);
  }

  void fill() {
    for (std::size_t i = 0; i < words_.size(); ++i) words_[i] = expected(i);
  }
  void forget() { std::ranges::fill(words_, 0); }
  [[nodiscard]] bool is_right() const {
    const std::size_t whole = size_bytes_ / sizeof(std::uint64_t);
    for (std::size_t i = 0; i < whole; ++i) {
      if (words_[i] != expected(i)) return false;
    }
    const std::uint64_t last = expected(whole);
    return std::memcmp(&words_[whole], &last, size_bytes_ % sizeof last) == 0;
  }
  [[nodiscard]] Shape shape() const { return Shape{size_bytes_}; }
  [[nodiscard]] bool empty() const { return size_bytes_ == 0; }
  [[nodiscard]] std::uint64_t* data() { return words_.data(); }

 private:
  [[nodiscard]] std::uint64_t expected(std::size_t i) const { return (seed_ + i + 1) * 0x9E3779B97F4A7C15U; }

  std::uint64_t size_bytes_;
  std::uint64_t seed_;
  std::span<std::uint64_t> words_;
};

class UnevenSizes : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    int ranks = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    ASSERT_EQ(ranks, kRanks);
    std::uint64_t available_bytes = free_bytes();
    MPI_Bcast(&available_bytes, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    if (available_bytes < kNeededBytes) {
      GTEST_SKIP() << "too little room for containers of 1 GiB: " << available_bytes << " bytes are free in /dev/shm "
                   << "and in memory, of " << kNeededBytes;
    }
    directory_ = make_shared_directory("/dev/shm");
    ASSERT_FALSE(directory_.empty());
    options_.open.chained = true;  // starts one after the other in one launch
    options_.store.path = store_of(rank_);
    options_.persistent.path = directory_ + "/prefix";
    options_.persistent.every = 0;
    options_.pipeline.mode = PipelineMode::inline_;  // levels are looked at right after commit
    options_.redundancy.scheme = GetParam().scheme;
    options_.redundancy.parity = GetParam().parity;
    options_.comm.timeout_s = 60;
    options_.log.level = LogLevel::error;
  }
  void TearDown() override {
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank_ == 0 && !directory_.empty()) std::filesystem::remove_all(directory_);
  }

  /// The lesser of what /dev/shm and memory have; 0 where there is no /dev/shm.
  [[nodiscard]] static std::uint64_t free_bytes() {
    struct statvfs info {};
    if (::statvfs("/dev/shm", &info) != 0) return 0;
    std::uint64_t memory_bytes = 0;
    std::ifstream file("/proc/meminfo");
    for (std::string line; std::getline(file, line);) {
      if (line.starts_with("MemAvailable:")) memory_bytes = std::stoull(line.substr(line.find(':') + 1)) * 1024;
    }
    return std::min<std::uint64_t>(memory_bytes, info.f_bavail * info.f_frsize);
  }
  [[nodiscard]] std::string store_of(int rank) const { return directory_ + "/store/" + std::to_string(rank); }
  [[nodiscard]] Content content_of(int round) {
    return {kSizes[static_cast<std::size_t>(rank_ + round) % kRanks], rank_, round, memory_};
  }
  static Tag tag_of(int round) { return "round-" + std::to_string(round); }

  void commit(Engine& engine, int round) {
    Content content = content_of(round);
    content.fill();
    engine.create(tag_of(round));
    if (!content.empty()) (void)engine.save("bytes", {content.data(), DataType::uint8, content.shape()});
    engine.commit();
    EXPECT_EQ(engine.level(tag_of(round)), Level::protected_);
  }

  void open(Engine& engine, int round, RecoverySource source) {
    Content content = content_of(round);
    ASSERT_EQ(engine.open(), tag_of(round));
    EXPECT_EQ(engine.info().source, source);
    content.forget();
    if (!content.empty()) (void)engine.load("bytes", {content.data(), DataType::uint8, content.shape()});
    engine.close();
    EXPECT_TRUE(content.is_right()) << "of rank " << rank_ << " in round " << round;
    EXPECT_EQ(engine.level(tag_of(round)), Level::protected_);
  }

  void lose(int first) const {
    MPI_Barrier(MPI_COMM_WORLD);
    if ((rank_ - first + kRanks) % kRanks < static_cast<int>(GetParam().parity)) {
      std::filesystem::remove_all(store_of(rank_));
    }
    MPI_Barrier(MPI_COMM_WORLD);
  }

  int rank_ = 0;
  std::string directory_;
  Options options_;
  faults::SimulatedNodes nodes_{1};

 private:
  std::vector<std::uint64_t> memory_;
};

TEST_P(UnevenSizes, R8_R33_LostMembersAreMadeAgainAndFilesAreRefilledByOtherSizes) {
  for (int round = 0; round < 2; ++round) {
    {
      Engine engine(mpi(MPI_COMM_WORLD), options_);
      if (round > 0) open(engine, round - 1, RecoverySource::in_place);
      commit(engine, round);
      engine.finalize();
    }
    const int largest = (kRanks - round) % kRanks;
    for (const int lost : {largest, largest + 2}) {
      lose(lost % kRanks);
      Engine engine(mpi(MPI_COMM_WORLD), options_);
      open(engine, round, RecoverySource::rebuilt);
      engine.finalize();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Schemes, UnevenSizes, testing::Values(Case{Scheme::xor_, 1}, Case{Scheme::rs, 2}),
                         [](const auto& each) {
                           return std::string(to_string(each.param.scheme)) + std::to_string(each.param.parity);
                         });

}  // namespace
}  // namespace kedge::uneven_sizes_test
