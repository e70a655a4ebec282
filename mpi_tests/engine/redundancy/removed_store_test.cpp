// Another process removes a store, or a part of it, at any moment while the job runs (logind's RemoveIPC, a cleaner):
// it is recreated, and what is gone counts as lost. On the real file system.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/text.hpp"
#include "harness/blocking_file_system.hpp"
#include "harness/engine_checks.hpp"
#include "harness/several_starts.hpp"
#include "store/file_name.hpp"

namespace kedge::faults::removed_store_test {
namespace {

namespace stdfs = std::filesystem;

constexpr int kRanks = 4;  // two on each of two nodes

/// What goes, of the store in this directory.
struct Removal {
  std::string name;
  std::function<void(const stdfs::path& store)> carry_out;
  bool takes_data = true;
  friend void PrintTo(const Removal& one, std::ostream* out) { *out << one.name; }
};

void remove_if(const stdfs::path& store, const std::function<bool(const std::string& name)>& condition) {
  std::vector<stdfs::path> paths;
  for (const auto& entry : stdfs::directory_iterator(store)) {
    if (condition(entry.path().filename().string())) paths.push_back(entry.path());
  }
  for (const stdfs::path& path : paths) stdfs::remove_all(path);
}

bool is_lock(const std::string& name) { return name.starts_with(store::kLockPrefix); }

void replace_locks(const stdfs::path& store) {
  for (const auto& entry : stdfs::directory_iterator(store)) {
    if (!is_lock(entry.path().filename().string())) continue;
    std::ofstream(entry.path().string() + ".other") << "somebody";
    stdfs::rename(entry.path().string() + ".other", entry.path());
  }
}

class RemovedStore : public testing::TestWithParam<Removal> {
 protected:
  void SetUp() override {
    std::string pattern = "/dev/shm/kedge-test-XXXXXX";
    if (::mkdtemp(pattern.data()) == nullptr) GTEST_SKIP() << "/dev/shm is not there or cannot be written";
    directory = pattern;
    job.ranks_per_node = 2;
    job.options.redundancy.scheme = Scheme::partner;
    job.options.store.path = directory + "/{node}";
    job.options.persistent.path = directory + "/prefix";
    job.options.persistent.every = 0;
    job.surroundings = [this](int, start::Environment& environment) {
      environment.file_system = std::make_shared<BlockingFileSystem>(fs::posix_file_system(), gate);
    };
  }
  void TearDown() override {
    if (!directory.empty()) stdfs::remove_all(directory);
  }

  [[nodiscard]] std::vector<stdfs::path> stores(const std::vector<int>& nodes) const {
    std::vector<stdfs::path> found;
    for (const int node : nodes) {
      for (const auto& entry : stdfs::directory_iterator(directory + compose("/node{}", node))) found.push_back(entry);
    }
    return found;
  }
  /// COLLECTIVE.
  void remove(Engine& engine, int rank, const std::vector<int>& nodes) {
    once(engine, rank, [&] { std::ranges::for_each(stores(nodes), GetParam().carry_out); });
  }
  [[nodiscard]] std::size_t warnings() const {
    std::size_t count = 0;
    for (const std::string& line : job.log()) {
      if (line.find("RemoveIPC") != std::string::npos) ++count;
    }
    return count;
  }

  std::string directory;
  Gate gate;
  SimulatedJob job{kRanks};
};

TEST_P(RemovedStore, BetweenCheckpointsTheNextIsMadeAndFoundAfterAKill) {
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    commit_step(engine, scope.rank, "a", 1);
    remove(engine, scope.rank, {1});
    commit_step(engine, scope.rank, "b", 2);
    EXPECT_EQ(engine.level("b"), Level::protected_);
    commit_step(engine, scope.rank, "c", 3);
  }));
  EXPECT_EQ(warnings(), 1U);
  for (const stdfs::path& one : stores({0, 1})) EXPECT_TRUE(stdfs::exists(one / store::kCommitRecord)) << one;
  const Opened next = reopen(job);
  EXPECT_EQ(next.tag, "c") << text_of(next.failure);
  EXPECT_EQ(next.step, 3);
}

/// What fails is the checkpoint whose bytes went, and no other.
TEST_P(RemovedStore, BetweenSaveAndCommitThatOneFails) {
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    commit_step(engine, scope.rank, "a", 1);
    const std::vector<double> values(1000, 7);
    engine.create("b");
    EXPECT_TRUE(engine.save("values", region(std::span(values))).ok());
    if (scope.rank == 3) std::ranges::for_each(stores({1}), GetParam().carry_out);
    const auto failure = failure_of([&] { engine.commit(); });
    EXPECT_EQ(failure.has_value(), GetParam().takes_data) << text_of(failure);
    if (failure) {
      EXPECT_EQ(failure->code, ErrorCode::io) << text_of(failure);
    }
    commit_step(engine, scope.rank, "c", 3);
  }));
  EXPECT_EQ(warnings(), 1U);
  EXPECT_EQ(reopen(job).step, 3);
}

/// Where nothing of the file that is being written is looked at, the directory that is gone is io all the same.
TEST_P(RemovedStore, WhatNeedsTheDirectoryMeanwhileSaysSo) {
  const bool is_gone = GetParam().takes_data;
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    engine.create("a");
    if (scope.rank == 3) std::ranges::for_each(stores({1}), GetParam().carry_out);
    if (scope.rank == 3 && !stdfs::exists(directory + "/node1")) {
      EXPECT_EQ(code_of_status(engine.route_out("file").status), ErrorCode::io);
    }
    const auto failure = failure_of([&] { engine.commit(); });
    EXPECT_EQ(failure.has_value(), is_gone);
    commit_step(engine, scope.rank, "b", 2);
  }));
}

TEST_P(RemovedStore, OnAllNodesTheNextIsMade) {
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    commit_step(engine, scope.rank, "a", 1);
    remove(engine, scope.rank, {0, 1});
    commit_step(engine, scope.rank, "b", 2);
    EXPECT_EQ(engine.level("a"), Level::none);
    EXPECT_EQ(engine.level("b"), Level::protected_);
  }));
  EXPECT_EQ(warnings(), 1U);
  EXPECT_EQ(reopen(job).step, 2);
}

/// The commit of a lost node is what the redundancy makes of it.
TEST_P(RemovedStore, WhatItHeldCountsAsLost) {
  job.options.redundancy.scheme = Scheme::single;
  job.options.store.keep = 2;
  const bool is_lost = GetParam().takes_data;
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    commit_step(engine, scope.rank, "a", 1);
    remove(engine, scope.rank, {1});
    engine.create("b");
    EXPECT_EQ(engine.level("a"), is_lost ? Level::none : Level::local);
    engine.abandon();
  }));
  const Opened next = reopen(job);
  EXPECT_EQ(next.step, is_lost ? -1 : 1);
  EXPECT_EQ(next.failure && next.failure->code == ErrorCode::unrecoverable, is_lost) << text_of(next.failure);
}

TEST_P(RemovedStore, OpenInTheSameProcessRebuildsIt) {
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    commit_step(engine, scope.rank, "a", 1);
    remove(engine, scope.rank, {0});
    EXPECT_EQ(engine.open(), "a");
    EXPECT_EQ(load_step(engine, scope.rank), 1);
    engine.close();
    commit_step(engine, scope.rank, "b", 2);
    engine.finalize();
  }));
  EXPECT_EQ(reopen(job).step, 2);
}

TEST_P(RemovedStore, TheNextStartRebuildsIt) {
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    commit_step(engine, scope.rank, "a", 1);
    remove(engine, scope.rank, {1});
  }));
  EXPECT_EQ(reopen(job).step, 1);
}

TEST_P(RemovedStore, ProtectingFailsAndTheNextIsMade) {
  job.options.redundancy.every = 2;
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    commit_step(engine, scope.rank, "a", 1);
    remove(engine, scope.rank, {0, 1});
    const auto failure = failure_of([&] { engine.wait("a", Level::protected_); });
    EXPECT_EQ(failure.has_value(), GetParam().takes_data) << text_of(failure);
    if (failure) {
      EXPECT_EQ(failure->code, ErrorCode::io) << text_of(failure);
    }
    commit_step(engine, scope.rank, "b", 2);
    EXPECT_EQ(engine.level("b"), Level::protected_);
  }));
  EXPECT_EQ(reopen(job).step, 2);
}

/// A flush goes on from files that it has open, although their names are gone.
TEST_P(RemovedStore, WhileItIsFlushedInTheBackground) {
  job.options.persistent.every = 1;
  job.options.pipeline.mode = PipelineMode::background;
  gate.close();
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    commit_step(engine, scope.rank, "a", 1);
    once(engine, scope.rank, [&] { gate.await(kRanks); });
    remove(engine, scope.rank, {1});
    once(engine, scope.rank, [&] { gate.open(); });
    commit_step(engine, scope.rank, "b", 2);
    engine.wait("b", Level::persistent);
    engine.finalize();
  }));
  EXPECT_EQ(reopen(job).step, 2);
}

TEST_P(RemovedStore, BeforeTheEnd) {
  for (const OnExit on_exit : {OnExit::keep, OnExit::remove}) {
    job.options.store.on_exit = on_exit;
    expect_all_returned(job.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      commit_step(engine, scope.rank, "a", 1);
      remove(engine, scope.rank, {1});
      engine.finalize();
    }));
    const Opened next = reopen(job);
    EXPECT_FALSE(next.failure) << text_of(next.failure);
    EXPECT_EQ(next.step, on_exit == OnExit::keep ? 1 : -1);
  }
}

INSTANTIATE_TEST_SUITE_P(
    What, RemovedStore,
    testing::Values(
        Removal{"directory", [](const stdfs::path& store) { stdfs::remove_all(store); }},
        Removal{"all_on_the_way_to_it", [](const stdfs::path& store) { stdfs::remove_all(store.parent_path()); }},
        Removal{"all_files", [](const stdfs::path& store) { remove_if(store, [](const auto&) { return true; }); }},
        Removal{"files_of_commits",
                [](const stdfs::path& store) {
                  remove_if(store, [](const auto& name) { return store::parse_file_name(name).has_value(); });
                }},
        Removal{"locks", [](const stdfs::path& store) { remove_if(store, is_lock); }, false},
        Removal{"locks_replaced", replace_locks, false}),
    [](const auto& one) { return one.param.name; });

}  // namespace
}  // namespace kedge::faults::removed_store_test
