// The node-local store: where it is, what it reuses, what it refuses before anything is written, what it leaves behind
// and what it keeps on exit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <numeric>
#include <set>

#include "harness/simulated_job.hpp"
#include "store/write_combiner.hpp"

namespace kedge::faults::store_test {
namespace {

using testing::HasSubstr;

std::vector<double> values_of(int rank, int step, std::size_t count = 1000) {
  std::vector<double> values(count);
  std::iota(values.begin(), values.end(), 1000.0 * rank + step);
  return values;
}

void save_step(Engine& engine, int rank, int step, std::size_t count = 1000) {
  auto values = values_of(rank, step, count);
  State state;
  state.add("values", values);
  engine.checkpoint("step-" + std::to_string(step), state);
}

void expect_step(Engine& engine, int rank, int step, std::size_t count = 1000) {
  std::vector<double> values(count);
  State state;
  state.add("values", values);
  ASSERT_EQ(engine.restore(state), "step-" + std::to_string(step));
  EXPECT_EQ(values, values_of(rank, step, count));
}

TEST(WriteCombiner, GathersSmallPiecesAndKeepsTheirOrder) {
  FaultyDisk disk;
  disk.make_directories("/d");
  const auto file = disk.view(0)->create("/d/f");
  const auto before = disk.operations(0);
  store::WriteCombiner combiner(*file);
  std::vector<std::byte> expected;
  for (int i = 0; i < 1000; ++i) {
    const std::vector piece(100, static_cast<std::byte>(i));
    combiner.write_with_crc(expected.size(), piece, 0);
    expected.insert(expected.end(), piece.begin(), piece.end());
  }
  EXPECT_EQ(disk.operations(0), before) << "nothing is written before the buffer is full";
  combiner.write_with_crc(10, std::vector(5, std::byte{0xff}), 0);  // not adjacent: what was gathered goes first
  std::fill_n(expected.begin() + 10, 5, std::byte{0xff});
  combiner.write(15, std::vector(5, std::byte{0xfe}));
  std::fill_n(expected.begin() + 15, 5, std::byte{0xfe});
  std::vector<std::byte> back(10);
  combiner.read(10, back);
  EXPECT_TRUE(std::equal(back.begin(), back.end(), expected.begin() + 10)) << "what is gathered is read, too";
  combiner.write(20, std::vector(5, std::byte{0xfd}));
  combiner.write(0, std::vector(store::WriteCombiner::kBufferBytes, std::byte{1}));  // at once, after what was gathered
  expected.assign(store::WriteCombiner::kBufferBytes, std::byte{1});
  EXPECT_EQ(disk.read_all("/d/f"), expected);
  combiner.flush();
  EXPECT_EQ(disk.read_all("/d/f"), expected);
}

class Store : public testing::TestWithParam<bool> {
 protected:
  SimulatedJob job{2, GetParam() ? SimulatedJob::memory_disk() : SimulatedJob::block_disk()};
  void run(const std::function<void(RankScope&, Engine&)>& body) {
    for (const auto& outcome : job.start([&](RankScope& scope) {
           Engine engine = scope.make_engine();
           body(scope, engine);
         })) {
      EXPECT_TRUE(outcome.returned()) << (outcome.failure ? to_string(*outcome.failure) : "");
    }
  }
};
INSTANTIATE_TEST_SUITE_P(Kinds, Store, testing::Bool(),
                         [](const auto& kind) { return kind.param ? "memory" : "block"; });

TEST_P(Store, UsesTwoFilesPerRankInTurn) {
  run([&](RankScope& scope, Engine& engine) {
    for (int step = 1; step <= 5; ++step) save_step(engine, scope.rank, step);
    expect_step(engine, scope.rank, 5);
    engine.finalize();
  });
  EXPECT_EQ(container_files(job.disk, 0).size(), 2U);
  EXPECT_EQ(container_files(job.disk, 1).size(), 2U);
}

TEST_P(Store, OnlyTheFirstCheckpointTakesNewStorageForItsCopy) {
  job.options.redundancy.scheme = Scheme::single;
  job.options.store.keep = 2;
  const std::size_t ready = GetParam() ? 1 : 0;  // block storage is written by calls, which need none before
  run([&](RankScope& scope, Engine& engine) {
    for (std::size_t step = 1; step <= 4; ++step) {
      save_step(engine, scope.rank, static_cast<int>(step));
      EXPECT_EQ(container_files(job.disk, scope.rank).size(), std::min<std::size_t>(step + ready, 3)) << step;
    }
  });
  std::set<std::size_t> sizes;
  for (const std::string& path : container_files(job.disk, 0)) sizes.insert(job.disk.read_all(path).size());
  EXPECT_EQ(sizes.size(), 1U) << "each as large as the others";
}

TEST_P(Store, NoFileComesAndGoesWithEachCheckpoint) {
  job.ranks_per_node = 1;
  job.options.redundancy.scheme = Scheme::partner;
  job.options.redundancy.every = 0;
  run([&](RankScope& scope, Engine& engine) {
    for (int step = 1; step <= 6; ++step) {
      save_step(engine, scope.rank, step);
      EXPECT_LE(container_files(job.disk, scope.rank).size(), 2U) << step;
      engine.wait("step-" + std::to_string(step), Level::protected_);
      EXPECT_EQ(container_files(job.disk, scope.rank).size(), step == 1 && !GetParam() ? 1U : 2U) << step;
    }
  });
}

TEST_P(Store, WhatWasMadeReadyAndNotUsedIsGivenBack) {
  std::uint64_t kept = 0;
  run([&](RankScope& scope, Engine& engine) {
    save_step(engine, scope.rank, 1);
    engine.finalize();
  });
  for (int rank = 0; rank < 2; ++rank) {
    for (const std::string& path : container_files(job.disk, rank)) kept += job.disk.read_all(path).empty() ? 0U : 1U;
  }
  EXPECT_EQ(kept, 2U) << "one container of each rank";
  run([&](RankScope& scope, Engine& engine) { expect_step(engine, scope.rank, 1); });
}

TEST_P(Store, NoRoomForTheNextOneIsNoFailureOfThisOne) {
  job.options.redundancy.scheme = Scheme::single;
  job.options.store.quota_bytes = std::uint64_t{600} << 10U;  // of each rank one container of 200 KB and no other
  run([&](RankScope& scope, Engine& engine) {
    save_step(engine, scope.rank, 1, 25000);
    EXPECT_THROW(save_step(engine, scope.rank, 2, 25000), Error);
    expect_step(engine, scope.rank, 1, 25000);
  });
}

TEST_P(Store, KeepsAsManyAsAskedAndGivesUpTheRestAfterARestart) {
  job.options.store.keep = 3;
  run([&](RankScope& scope, Engine& engine) {
    for (int step = 1; step <= 6; ++step) save_step(engine, scope.rank, step);
    EXPECT_EQ(engine.level("step-4"), Level::local);
    EXPECT_EQ(engine.level("step-3"), Level::none);
    engine.finalize();
  });
  EXPECT_EQ(container_files(job.disk, 0).size(), 4U);
  job.options.store.keep = 1;
  run([&](RankScope& scope, Engine& engine) {
    expect_step(engine, scope.rank, 6);
    save_step(engine, scope.rank, 7);
    engine.finalize();
  });
  EXPECT_EQ(container_files(job.disk, 0).size(), 2U);
}

TEST_P(Store, LeavesOnExitWhatItWasTold) {
  run([&](RankScope& scope, Engine& engine) {
    save_step(engine, scope.rank, 1);
    engine.finalize();
  });
  EXPECT_TRUE(job.logged("to free it: kedge drop /nodes/node0/kedge-1000-test-"));
  EXPECT_FALSE(container_files(job.disk, 0).empty());
  job.options.store.on_exit = OnExit::remove_if_persistent;  // nothing is persistent: all stays
  run([&](RankScope&, Engine& engine) { engine.finalize(); });
  EXPECT_FALSE(container_files(job.disk, 0).empty());
  job.options.store.on_exit = OnExit::remove;
  run([&](RankScope&, Engine& engine) { engine.finalize(); });
  EXPECT_TRUE(container_files(job.disk, 0).empty());
  EXPECT_TRUE(container_files(job.disk, 1).empty());
}

TEST_P(Store, SpaceIsCheckedBeforeAnythingIsWritten) {
  job.options.store.quota_bytes = std::uint64_t{200} << 10U;
  run([&](RankScope& scope, Engine& engine) {
    save_step(engine, scope.rank, 1);
    try {
      save_step(engine, scope.rank, 2, 50000);
      ADD_FAILURE() << "400 KB went into a quota of 200 KiB";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::no_space);
      EXPECT_THAT(error.what(), HasSubstr("store.quota_bytes"));
    }
    expect_step(engine, scope.rank, 1);
    save_step(engine, scope.rank, 3);
    expect_step(engine, scope.rank, 3);
  });
}

TEST_P(Store, AReservationThatTheSystemRefusesSaysWhatIsNeededAndWhatIsFree) {
  int refused = 0;
  run([&](RankScope& scope, Engine& engine) {
    save_step(engine, scope.rank, 1);
    for (int step = 2; step < 30; ++step) {
      if (scope.rank == 0) {
        job.disk.fail(0, job.disk.operations(0) + static_cast<std::uint64_t>(step) - 1, EDQUOT);
      }
      const auto values = values_of(scope.rank, step, static_cast<std::size_t>(step) * 50000);
      try {
        // Not by a State, which is tried twice.
        engine.create("a");
        (void)engine.save("values", {values.data(), DataType::float64, {values.size()}});
        engine.commit();
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::no_space);
        if (scope.rank != 0 || error.failure().message.find("cannot reserve") == std::string::npos) continue;
        ++refused;
        EXPECT_THAT(error.what(), HasSubstr("this user's quota is used up"));
        EXPECT_THAT(error.what(), HasSubstr("; up to "));
        EXPECT_THAT(error.what(), HasSubstr(" inodes are free (filesystem)"));
      }
    }
  });
  EXPECT_GT(refused, 0);
}

TEST_P(Store, AContainerRemovedOrCutBetweenCallsIsAnErrorAndTheNextCheckpointWorks) {
  for (const bool removed : {true, false}) {
    run([&](RankScope& scope, Engine& engine) {
      save_step(engine, scope.rank, 1);
      engine.create("step-2");
      auto values = values_of(scope.rank, 2);
      engine.save("values", region(std::span<const double>(values)));
      scope.communicator.barrier(Deadline::never());
      if (scope.rank == 1) {
        for (const std::string& path : container_files(job.disk, 1)) {
          if (removed) job.disk.remove_all(path);
          else job.disk.truncate_from_outside(path, 100);
        }
      }
      scope.communicator.barrier(Deadline::never());
      try {
        engine.commit();
        ADD_FAILURE() << "committed into a file that is gone";
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::io);
        EXPECT_EQ(error.failure().rank, 1);
      }
      save_step(engine, scope.rank, 3);
      expect_step(engine, scope.rank, 3);
      engine.finalize();
    });
  }
}

/// Before many bytes go to a mapping, not only when it is sealed: a write behind the end of the file ends the process.
TEST_P(Store, ALargeRegionIsNotCopiedIntoAFileThatWasCut) {
  run([&](RankScope& scope, Engine& engine) {
    engine.create("step-1");
    const std::vector<double> values(std::size_t{1} << 17U);  // 1 MiB
    EXPECT_TRUE(engine.save("first", region(std::span<const double>(values))).ok());
    scope.communicator.barrier(Deadline::never());
    if (scope.rank == 1) {
      for (const std::string& path : container_files(job.disk, 1)) job.disk.truncate_from_outside(path, 100);
    }
    scope.communicator.barrier(Deadline::never());
    const Status status = engine.save("second", region(std::span<const double>(values)));
    EXPECT_EQ(status.ok(), scope.rank != 1);
    EXPECT_THROW(engine.commit(), Error);
    save_step(engine, scope.rank, 2);
  });
}

TEST(StoreNodes, UnequalNodesEachKeepTheirOwnRanks) {
  SimulatedJob job(5);
  job.ranks_per_node = 3;  // 3 + 2
  for (int start = 0; start < 2; ++start) {
    for (const auto& outcome : job.start([&](RankScope& scope) {
           Engine engine = scope.make_engine();
           if (start == 1) expect_step(engine, scope.rank, 1);
           save_step(engine, scope.rank, start + 1);
           engine.finalize();
         })) {
      EXPECT_TRUE(outcome.returned());
    }
  }
  for (int rank = 0; rank < 5; ++rank) {
    for (const std::string& path : container_files(job.disk, rank)) {
      EXPECT_THAT(path, HasSubstr(rank < 3 ? "/nodes/node0/" : "/nodes/node1/"));
    }
  }
}

TEST(StoreSpeed, ASaveIntoARecycledContainerLooksAtTheFileOncePerMebibyte) {
  constexpr int kRegions = 2000;
  SimulatedJob job(1);
  std::vector<std::uint64_t> reads;
  job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    const std::vector<char> memory(256, 'x');
    for (int step = 0; step < 4; ++step) {
      engine.create("step-" + std::to_string(step));
      const std::uint64_t before = job.disk.reads(0);
      for (int i = 0; i < kRegions; ++i) {
        EXPECT_TRUE(engine.save("small/" + std::to_string(i), region(std::span<const char>(memory))).ok());
      }
      reads.push_back(job.disk.reads(0) - before);
      engine.commit();
    }
    engine.finalize();
  });
  ASSERT_EQ(reads.size(), 4U);
  EXPECT_LE(reads.back(), 4U);
}

}  // namespace
}  // namespace kedge::faults::store_test
