// The engine over MPI and POSIX, on memory and on block storage: different calls are bad_state, local calls report
// their failure and the closing call throws it on all ranks, routed files come back, and so do files written past the
// page cache.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <mpi.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <functional>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "harness/simulated_nodes.hpp"
#include "kedge/kedge.hpp"
#include "kedge/mpi.hpp"
#include "mpi/shared_directory.hpp"

namespace kedge::engine_test {
namespace {

int rank_in(MPI_Comm comm) {
  int rank = 0;
  MPI_Comm_rank(comm, &rank);
  return rank;
}

int size_of(MPI_Comm comm) {
  int size = 0;
  MPI_Comm_size(comm, &size);
  return size;
}

/// What the call throws, checked to be the same on all ranks of the world.
template <class Call>
std::optional<Failure> failure_on_all_ranks(Call&& call) {
  std::optional<Failure> failure;
  try {
    call();
  } catch (const Error& error) {
    failure = error.failure();
  }
  std::array<char, 4096> mine{};
  const std::string text = failure ? to_string(*failure) : "success";
  text.copy(mine.data(), mine.size() - 1);
  std::array<char, 4096> of_rank_0 = mine;
  MPI_Bcast(of_rank_0.data(), static_cast<int>(of_rank_0.size()), MPI_CHAR, 0, MPI_COMM_WORLD);
  EXPECT_STREQ(mine.data(), of_rank_0.data());
  return failure;
}

void write_file(const std::string& path, const std::string& content) {
  std::ofstream(path, std::ios::binary) << content;
}

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

struct Kind {
  const char* name;
  const char* storage;
  PipelineMode mode;
};

/// On each kind of storage, in a directory that all ranks share and that is removed at the end.
class EngineOverMpi : public testing::TestWithParam<Kind> {
 protected:
  void SetUp() override {
    directory_ = make_shared_directory(GetParam().storage);
    ASSERT_FALSE(directory_.empty()) << "no directory could be made below " << GetParam().storage;
    options_.open.chained = true;  // starts one after the other in one launch
    options_.pipeline.mode = GetParam().mode;
    options_.store.path = directory_ + "/store/{node}";
    options_.persistent.path = directory_ + "/prefix";
    options_.comm.timeout_s = 30;
    options_.log.level = LogLevel::warning;
  }
  void TearDown() override {
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank_ == 0 && !directory_.empty()) std::filesystem::remove_all(directory_);
  }

  [[nodiscard]] Engine make_engine() const { return Engine(mpi(MPI_COMM_WORLD), options_); }

  int rank_ = rank_in(MPI_COMM_WORLD);
  int ranks_ = size_of(MPI_COMM_WORLD);
  std::string directory_;
  Options options_;
  faults::SimulatedNodes nodes_{2};
};

TEST_P(EngineOverMpi, ManyEnginesInOneLaunchGoOnFromEachOther) {
  for (std::uint64_t round = 0; round < 4; ++round) {
    Engine engine = make_engine();
    std::uint64_t step = 0;
    std::vector<double> field(50'000 + 1000 * static_cast<std::size_t>(rank_));
    std::vector<std::int32_t> own(static_cast<std::size_t>(rank_) * 3, 0);
    State state;
    state.add("step", step).add("field", field).add("of-rank", own);
    const auto tag = engine.restore(state);
    if (round == 0) {
      EXPECT_EQ(tag, std::nullopt);
    } else {
      EXPECT_EQ(tag, "step-" + std::to_string(step));
      EXPECT_EQ(step, 3 * round);
      for (std::size_t i = 0; i < field.size(); ++i) {
        ASSERT_EQ(field[i], static_cast<double>(step * 1'000'000 + i + static_cast<std::size_t>(rank_)));
      }
      EXPECT_THAT(own, testing::Each(static_cast<std::int32_t>(step)));
    }
    for (int i = 0; i < 3; ++i) {
      ++step;
      std::iota(field.begin(), field.end(), static_cast<double>(step * 1'000'000 + static_cast<std::size_t>(rank_)));
      std::fill(own.begin(), own.end(), static_cast<std::int32_t>(step));
      if (engine.need_checkpoint() || i == 2) engine.checkpoint("step-" + std::to_string(step), state);
    }
    if (round % 2 == 0) engine.finalize();  // else it just goes, like a job that was killed
  }
}

/// Whether this process has a file below the directory open for writes past the page cache.
bool writes_directly_below(const std::string& directory) {
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    if (!std::filesystem::read_symlink(entry, gone).string().starts_with(directory)) continue;
    const int flags = ::fcntl(std::stoi(entry.path().filename()), F_GETFL);
    if (flags != -1 && (flags & O_DIRECT) != 0) return true;
  }
  return false;
}

TEST_P(EngineOverMpi, WhatWasWrittenPastThePageCacheComesBackAndIsProtected) {
  const bool is_memory = std::string(GetParam().storage) == "/dev/shm";
  options_.store.durable = !is_memory;
  std::string refusal;  // known to rank 0
  options_.log.level = LogLevel::info;
  options_.log.sink = [&](LogLevel, std::string_view line) {
    if (line.find("direct writes are unavailable") != std::string_view::npos) refusal = line;
  };
  std::vector<std::uint64_t> field((std::size_t{9} << 17U) + 5);  // 9 MiB and a little
  std::array<char, 3> odd{};
  State state;
  state.add("odd", odd).add("field", field);
  options_.persistent.every = 1;
  const std::string stores = directory_ + "/store";
  for (int round = 1; round <= 6; ++round) {
    // Turn by turn: each opens what the other wrote, and writes over what the other left.
    options_.io = round % 2 != 0 ? Io::direct : Io::buffered;
    if (round > 4) {  // what went to the prefix directly, and otherwise
      if (rank_ == 0) std::filesystem::remove_all(stores);
      MPI_Barrier(MPI_COMM_WORLD);
    }
    Engine engine = make_engine();
    if (round > 1) {
      ASSERT_EQ(engine.restore(state), "round-" + std::to_string(round - 1));
      for (std::size_t i = 0; i < field.size(); ++i) ASSERT_EQ(field[i], i * static_cast<std::size_t>(round - 1));
      ASSERT_EQ(odd.back(), static_cast<char>(round - 1));
      ASSERT_EQ(engine.info().source, round > 4 ? RecoverySource::fetched : RecoverySource::in_place);
    }
    for (std::size_t i = 0; i < field.size(); ++i) field[i] = i * static_cast<std::size_t>(round);
    odd.fill(static_cast<char>(round));
    const std::string tag = "round-" + std::to_string(round);
    engine.checkpoint(tag, state);
    engine.wait(tag, Level::persistent);
    EXPECT_EQ(engine.level(tag), Level::persistent);
    int refused = refusal.empty() ? 0 : 1;
    MPI_Bcast(&refused, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (refused != 0) GTEST_SKIP() << "no direct writes here: " << refusal;
    EXPECT_EQ(writes_directly_below(directory_), !is_memory && options_.io == Io::direct) << round;
    engine.finalize();
  }
}

TEST_P(EngineOverMpi, RoutedFilesComeBack) {
  Engine engine = make_engine();
  const std::string content(static_cast<std::size_t>(100'000 * rank_), static_cast<char>('a' + rank_));
  engine.create("a");
  const Routed out = engine.route_out("solver/restart.dat", 1'000'000);
  ASSERT_TRUE(out.status.ok());
  write_file(out.path, content);
  engine.commit();
  EXPECT_FALSE(std::filesystem::exists(out.path));
  EXPECT_EQ(engine.open(), "a");
  const Routed in = engine.route_in("solver/restart.dat");
  ASSERT_TRUE(in.status.ok()) << to_string(in.status.failure());
  EXPECT_EQ(read_file(in.path), content);
  engine.close();
  EXPECT_FALSE(std::filesystem::exists(in.path));
  engine.finalize();
}

TEST_P(EngineOverMpi, WhatCannotBeTakenInFailsOnAllRanks) {
  Engine engine = make_engine();
  std::int32_t value = 1;
  State state;
  state.add("value", value);
  engine.checkpoint("good", state);
  const auto commit_with = [&](const std::function<void(const std::string& path)>& prepare) {
    engine.create("bad");
    if (rank_ == ranks_ - 1) prepare(engine.route_out("file", 100).path);
    const auto failure = failure_on_all_ranks([&] { engine.commit(); });
    EXPECT_TRUE(failure && failure->rank == ranks_ - 1);
    value = 0;
    EXPECT_EQ(engine.restore(state), "good");
    EXPECT_EQ(value, 1);
    return failure ? failure->code : ErrorCode::timeout;
  };
  EXPECT_EQ(commit_with([](const std::string&) {}), ErrorCode::not_found);
  EXPECT_EQ(commit_with([](const std::string& path) { write_file(path, std::string(101, 'x')); }),
            ErrorCode::invalid_argument);
  EXPECT_EQ(commit_with([](const std::string& path) { std::filesystem::create_directories(path + "/inside"); }),
            ErrorCode::invalid_argument);
  EXPECT_EQ(commit_with([](const std::string& path) { std::filesystem::create_symlink("/etc/passwd", path); }),
            ErrorCode::invalid_argument);
  EXPECT_EQ(commit_with([](const std::string& path) { EXPECT_EQ(::mkfifo(path.c_str(), 0600), 0); }),
            ErrorCode::invalid_argument);
}

TEST_P(EngineOverMpi, ARankThatFailsInSaveFailsTheCommitOnAllAndTheNextWorks) {
  Engine engine = make_engine();
  std::vector<double> field(10'000, 1.5);
  State state;
  state.add("field", field);
  engine.checkpoint("good", state);
  engine.create("bad");
  const Status saved = engine.save(rank_ == ranks_ - 1 ? ".." : "field", region(std::span<const double>(field)));
  EXPECT_EQ(saved.ok(), rank_ != ranks_ - 1);
  const auto failure = failure_on_all_ranks([&] { engine.commit(); });
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->code, ErrorCode::invalid_argument);
  EXPECT_EQ(failure->rank, ranks_ - 1);
  EXPECT_GE(engine.level("good"), Level::local);  // protected, where the ranks are on several nodes
  engine.checkpoint("next", state);
  EXPECT_EQ(engine.restore(state), "next");
}

TEST_P(EngineOverMpi, AQuotaThatOneRankExceedsIsNoSpaceOnAll) {
  options_.store.quota_bytes = 4 << 20U;
  Engine engine = make_engine();
  std::vector<double> small(100, 2.5);
  const std::vector<double> large(1 << 20U);
  State state;
  state.add("small", small);
  engine.checkpoint("good", state);
  engine.create("bad");
  if (rank_ == 0) engine.save("large", region(std::span<const double>(large)));
  const auto failure = failure_on_all_ranks([&] { engine.commit(); });
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->code, ErrorCode::no_space);
  EXPECT_THAT(failure->message, testing::HasSubstr("quota"));
  engine.checkpoint("next", state);
  EXPECT_EQ(engine.restore(state), "next");
}

TEST_P(EngineOverMpi, RanksThatDifferAreToldAndGoOn) {
  if (ranks_ == 1) GTEST_SKIP() << "one rank cannot differ";
  Engine engine = make_engine();
  const auto calls = failure_on_all_ranks([&] {
    if (rank_ == 0) engine.create("a");
    else (void)engine.open();
  });
  ASSERT_TRUE(calls);
  EXPECT_EQ(calls->code, ErrorCode::bad_state);
  const auto tags = failure_on_all_ranks([&] { engine.create("step-" + std::to_string(rank_)); });
  ASSERT_TRUE(tags);
  EXPECT_EQ(tags->code, ErrorCode::bad_state);
  Options options = options_;
  options.run = "other";
  options.store.keep = rank_ == 1 ? 2 : 1;
  const auto differ = failure_on_all_ranks([&] { Engine(mpi(MPI_COMM_WORLD), options); });
  ASSERT_TRUE(differ);
  EXPECT_EQ(differ->code, ErrorCode::invalid_argument);
  EXPECT_THAT(differ->message, testing::HasSubstr("store.keep"));
  engine.checkpoint("a", State{});
  EXPECT_EQ(engine.open(), "a");
}

TEST_P(EngineOverMpi, TwoEnginesOverSubCommunicatorsAtOnce) {
  const int half = rank_ < (ranks_ + 1) / 2 ? 0 : 1;
  MPI_Comm part = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, half, -rank_, &part);  // in reverse order, so that ranks are others
  {
    options_.run = half == 0 ? "left" : "right";
    Engine engine(mpi(part), options_);
    std::int32_t value = 0;
    State state;
    state.add("value", value);
    // The left one makes more checkpoints: the two know nothing of each other.
    for (std::int32_t i = 0; i < (half == 0 ? 7 : 3); ++i) {
      value = 100 * half + 10 * rank_in(part) + i;
      engine.checkpoint("same-tag", state);
    }
    value = -1;
    EXPECT_EQ(engine.restore(state), "same-tag");
    EXPECT_EQ(value, 100 * half + 10 * rank_in(part) + (half == 0 ? 6 : 2));
    EXPECT_EQ(engine.info().world_size, static_cast<std::uint32_t>(size_of(part)));
    engine.finalize();
  }
  MPI_Comm_free(&part);
}

/// Both have work under way on the same ranks, each behind a worker of its own, and are not used in the same order.
TEST_P(EngineOverMpi, TwoRunsInOneProcess) {
  options_.persistent.every = 1;
  std::int32_t value = 0;
  State state;
  state.add("value", value);
  for (int start = 0; start < 2; ++start) {
    options_.run = "fluid";
    Engine fluid = make_engine();
    options_.run = "solid";
    Engine solid = make_engine();
    if (start == 1) {
      EXPECT_EQ(solid.restore(state), "step-4");
      EXPECT_EQ(value, 204 + rank_);
      EXPECT_EQ(fluid.restore(state), "step-5");
      EXPECT_EQ(value, 105 + rank_);
    }
    for (std::int32_t step = 1; step <= 5; ++step) {
      value = 100 + step + rank_;
      fluid.checkpoint("step-" + std::to_string(step), state);
      if (step == 5) break;
      value = 200 + step + rank_;
      solid.checkpoint("step-" + std::to_string(step), state);
    }
    solid.wait("step-4", Level::persistent);
    fluid.finalize();
    if (start == 1) solid.finalize();  // the first time it is destroyed as it is
  }
}

INSTANTIATE_TEST_SUITE_P(Storage, EngineOverMpi,
                         testing::Values(Kind{"Memory", "/dev/shm", PipelineMode::inline_},
                                         Kind{"Tmp", "/tmp", PipelineMode::inline_},
                                         Kind{"Background", "/dev/shm", PipelineMode::background}),
                         [](const auto& each) { return each.param.name; });

}  // namespace
}  // namespace kedge::engine_test
