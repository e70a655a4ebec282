// A protection that fails, for a full node, a quota, an error or a flipped bit, never undoes the commit, and the next
// one is protected again.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>

#include "base/text.hpp"
#include "harness/engine_checks.hpp"
#include "harness/set_files.hpp"

namespace kedge::faults::failed_protection_test {
namespace {

using format::SetFileKind;

constexpr int kRanks = 4;

struct Job : SimulatedJob {
  explicit Job(Scheme scheme = Scheme::xor_) : SimulatedJob(kRanks) {
    ranks_per_node = 1;
    options.redundancy.scheme = scheme;
  }
  [[nodiscard]] std::size_t warnings(std::string_view tag, const std::string& what = "is not protected against") const {
    const auto all = log();
    return static_cast<std::size_t>(std::ranges::count_if(all, [&](const auto& line) {
      return says(line, {compose("{} {}", tag, what)});  // the random ids in it may contain "b3"
    }));
  }
};

void barrier(RankScope& scope) { scope.communicator.barrier(Deadline::after(std::chrono::seconds(60))); }

/// Sizes of one commit's files on rank 0, from a run of its own.
struct Sizes {
  std::uint64_t container = 0, parity = 0, descriptor = 0;
  [[nodiscard]] std::uint64_t all() const { return container + parity + descriptor; }
};

Sizes sizes_of(Scheme scheme) {
  Job job(scheme);
  commit_steps(job, {{"a", 1}});
  return {job.disk.read_all(container_of(job.disk, 0, "a")).size(),
          job.disk.read_all(set_file_of(job.disk, SetFileKind::parity, 0, "a")).size(),
          job.disk.read_all(set_file_of(job.disk, SetFileKind::descriptor, 0, "a")).size()};
}

class FailureByScheme : public testing::TestWithParam<Scheme> {};
INSTANTIATE_TEST_SUITE_P(FailedProtection, FailureByScheme, testing::Values(Scheme::xor_, Scheme::partner, Scheme::rs),
                         [](const auto& one) { return std::string(to_string(one.param)); });

TEST_P(FailureByScheme, AFullNodeLeavesTheCommitLocalAndTheNextIsProtected) {
  const Sizes sizes = sizes_of(GetParam());
  for (const std::uint64_t room : {std::uint64_t{0}, sizes.parity / 2, sizes.parity}) {
    SCOPED_TRACE(compose("{} free for parity of {}", room, sizes.parity));
    Job job(GetParam());
    Volume volume;
    volume.memory_backed = true;
    volume.capacity_bytes = std::uint64_t{16} << 20U;
    job.disk.make_directories(store_of(2), 0755);
    job.disk.set_volume(store_of(2), volume);
    const std::string filler = store_of(2) + "/filler";
    const auto fill = [&](RankScope& scope, std::optional<std::uint64_t> free) {
      barrier(scope);
      if (scope.rank == 2) {
        job.disk.remove_all(filler);
        const std::uint64_t used = job.disk.used_bytes(store_of(2));
        if (free) job.disk.write_all(filler, std::vector<std::byte>(volume.capacity_bytes - used - *free));
      }
      barrier(scope);
    };
    expect_all_returned(job.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      commit_step(engine, scope.rank, "a", 1);
      fill(scope, room);  // the second container has its room already
      commit_step(engine, scope.rank, "b", 2);
      EXPECT_EQ(engine.level("a"), Level::protected_);
      EXPECT_EQ(engine.level("b"), Level::local);
      EXPECT_EQ(code_of([&] { engine.wait("b", Level::protected_); }), ErrorCode::no_space);
      EXPECT_EQ(engine.level("b"), Level::local);
    }));
    EXPECT_EQ(job.warnings("b"), 1U);
    const auto full = job.disk.snapshot();
    EXPECT_EQ(reopen(job).step, 2);
    EXPECT_EQ(job.warnings("b", "is open and not protected"), 1U) << "where no room was made nothing is tried again";
    job.disk.restore(full);
    job.disk.remove_all(filler);
    job.disk.remove_all(store_of(1));
    EXPECT_EQ(reopen(job).step, 1) << "a is kept while nothing newer is protected";
    job.disk.restore(full);
    expect_all_returned(job.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      EXPECT_EQ(engine.open(), "b");
      EXPECT_EQ(engine.level("b"), Level::local);
      engine.close();
      fill(scope, std::nullopt);
      commit_step(engine, scope.rank, "c", 3);
      EXPECT_EQ(engine.level("c"), Level::protected_);
    }));
    job.disk.remove_all(store_of(1));
    const Opened last = reopen(job);
    EXPECT_EQ(last.step, 3);
    EXPECT_EQ(last.level, Level::protected_);
  }
}

TEST(FailedProtection, AQuotaThatLeavesNoRoomForParity) {
  const Sizes sizes = sizes_of(Scheme::partner);
  Job job(Scheme::partner);
  // Three containers and one protection: what a job needs that goes on without a second protection.
  job.options.store.quota_bytes = 2 * sizes.container + sizes.all() + 6000;
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    commit_step(engine, scope.rank, "a", 1);
    EXPECT_EQ(engine.level("a"), Level::protected_);
    for (int step = 2; step < 6; ++step) {
      const Tag tag = compose("b{}", step);
      commit_step(engine, scope.rank, tag, step);
      EXPECT_EQ(engine.level(tag), Level::local);
      EXPECT_EQ(engine.level("a"), Level::protected_);
    }
  }));
  EXPECT_EQ(job.warnings("b3"), 1U);
  EXPECT_TRUE(job.logged("store.quota_bytes leaves"));
  const auto full = job.disk.snapshot();
  job.disk.remove_all(store_of(0));
  EXPECT_EQ(reopen(job).step, 1);
  job.disk.restore(full);
  job.options.store.quota_bytes = 0;
  const Opened opened = reopen(job, latest, Newer::keep, {{"c", 9}});
  EXPECT_EQ(opened.step, 5);
  EXPECT_EQ(opened.level, Level::protected_);
  job.disk.remove_all(store_of(0));
  EXPECT_EQ(reopen(job).step, 9);
}

TEST_P(FailureByScheme, EveryOperationThatFailsLeavesTheCommitLocalAndTheNextTryWorks) {
  Job job(GetParam());
  job.options.redundancy.every = 0;
  commit_steps(job, {{"a", 1}});
  const auto committed = job.disk.snapshot();
  constexpr int kVictim = 2;
  bool struck = true;
  for (std::uint64_t n = 1; struck; ++n) {
    SCOPED_TRACE(compose("operation {}", n));
    ASSERT_LT(n, 200U);
    job.disk.restore(committed);
    OnEachRank outcomes(kRanks);
    expect_all_returned(job.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      EXPECT_EQ(engine.open(), "a");
      engine.close();
      const std::uint64_t before = job.disk.operations(scope.rank);
      if (scope.rank == kVictim) job.disk.fail(kVictim, before + n, EIO);
      const auto failure = failure_of([&] { engine.wait("a", Level::protected_); });
      if (scope.rank == kVictim) {
        struck = job.disk.operations(kVictim) >= before + n;
        job.disk.heal(kVictim);
      }
      outcomes.put(scope.rank, failure);
      EXPECT_EQ(engine.level("a"), failure ? Level::local : Level::protected_);
      barrier(scope);
      engine.wait("a", Level::protected_);
      EXPECT_EQ(engine.level("a"), Level::protected_);
    }));
    if (const auto failure = outcomes.same()) {
      EXPECT_EQ(failure->code, ErrorCode::io);
      EXPECT_EQ(failure->rank, kVictim);
      EXPECT_EQ(failure->system_errno, EIO);
    }
    job.disk.remove_all(store_of(static_cast<int>(n % kRanks)));
    const Opened opened = reopen(job);
    EXPECT_EQ(opened.step, 1);
    EXPECT_EQ(opened.level, Level::protected_);
  }
}

TEST_P(FailureByScheme, AnErrorInTheProtectionOfACommitIsToldInOneLine) {
  // Where in the commit the writing of parity begins differs: the last few operations are its.
  Job job(GetParam());
  std::uint64_t last = 0;
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    commit_step(engine, scope.rank, "a", 1);
    if (scope.rank == 1) last = job.disk.operations(1);
  }));
  int told = 0;
  for (std::uint64_t n = last - 6; n <= last; ++n) {
    Job again(GetParam());
    again.disk.fail(1, n, EIO);
    Level level = Level::none;
    const auto outcomes = again.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      commit_step(engine, scope.rank, "a", 1);
      if (scope.rank == 0) level = engine.level("a");
    });
    expect_all_returned(outcomes);
    EXPECT_EQ(again.warnings("a"), level == Level::local ? 1U : 0U);
    told += level == Level::local ? 1 : 0;
    EXPECT_EQ(reopen(again).step, 1);
  }
  EXPECT_GT(told, 0);
}

TEST_P(FailureByScheme, ABitThatFlippedSinceTheCommitIsNotProtectedAsGood) {
  for (const bool in_data : {true, false}) {
    Job job(GetParam());
    job.options.redundancy.every = 0;
    OnEachRank outcomes(kRanks);
    expect_all_returned(job.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      commit_step(engine, scope.rank, "a", 1);
      barrier(scope);
      if (scope.rank == 0) {
        const std::string path = container_of(job.disk, 2, "a");
        job.disk.flip_bit(path, in_data ? inside_large(job.disk, path) : 70);
      }
      barrier(scope);
      outcomes.put(scope.rank, failure_of([&] { engine.wait("a", Level::protected_); }));
      EXPECT_EQ(engine.level("a"), Level::local);
    }));
    const auto failure = outcomes.same();
    ASSERT_TRUE(failure);
    EXPECT_EQ(failure->code, ErrorCode::corrupt);
    EXPECT_EQ(failure->rank, 2);
    EXPECT_TRUE(says(to_string(*failure), {store_of(2), in_data ? "field/large" : ""})) << to_string(*failure);
    EXPECT_TRUE(set_files(job.disk, SetFileKind::parity).empty());
    EXPECT_TRUE(set_files(job.disk, SetFileKind::descriptor).empty());
  }
}

}  // namespace
}  // namespace kedge::faults::failed_protection_test
