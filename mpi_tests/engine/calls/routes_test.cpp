// Files of the application's own that travel through a checkpoint, directories with nothing in them too; a link, a
// missing file and a full store are named.
#include <gmock/gmock.h>

#include "harness/routed_checks.hpp"

namespace kedge::faults::routes_test {
namespace {

using testing::HasSubstr;

bool exists(const FaultyDisk& disk, const std::string& path) { return disk.snapshot().contains(path); }

class Routes : public testing::TestWithParam<bool> {
 protected:
  [[nodiscard]] static DiskOptions disk() {
    return GetParam() ? SimulatedJob::memory_disk() : SimulatedJob::block_disk();
  }
};

TEST_P(Routes, FilesOfEachRankComeBackToItAndLeaveNothingBehind) {
  SimulatedJob job(3, disk());
  expect_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    engine.create("a");
    // Other files on each rank: rank 0 has none, rank 2 two; one of them larger than a block of checksums.
    for (int i = 0; i < scope.rank; ++i) {
      const Routed out = engine.route_out("files/" + std::to_string(i), 10 << 20U);
      ASSERT_TRUE(out.status.ok());
      job.disk.write_all(out.path, content_of(scope.rank, i == 0 ? 5'000'000 : 77));
    }
    engine.commit();
    scope.communicator.barrier(Deadline::never());
    EXPECT_THAT(routed_files(job.disk), testing::IsEmpty()) << "taken in, so gone";
    scope.communicator.barrier(Deadline::never());

    EXPECT_EQ(engine.open(), "a");
    std::vector<std::string> paths;
    for (const RegionInfo& region : engine.regions()) {
      EXPECT_TRUE(region.routed);
      const Routed in = engine.route_in(region.name);
      ASSERT_TRUE(in.status.ok());
      EXPECT_EQ(job.disk.read_all(in.path), content_of(scope.rank, region.size_bytes));
      paths.push_back(in.path);
    }
    EXPECT_EQ(paths.size(), static_cast<std::size_t>(scope.rank));
    engine.close();
    for (const std::string& path : paths) EXPECT_FALSE(exists(job.disk, path)) << "valid until close";
  }));
}

TEST_P(Routes, AnEmptyFileIsAFile) {
  SimulatedJob job(1, disk());
  expect_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    for (const std::uint64_t limit : {std::uint64_t{0}, std::uint64_t{100}}) {
      engine.create("a");
      const Routed out = engine.route_out("empty", limit);
      job.disk.write_all(out.path, {});
      engine.commit();
      EXPECT_EQ(engine.open(), "a");
      const Routed in = engine.route_in("empty");
      EXPECT_TRUE(in.status.ok()) << text_of(in.status.failure());
      EXPECT_TRUE(job.disk.read_all(in.path).empty());
      engine.close();
    }
  }));
}

TEST_P(Routes, EmptyDirectoriesInARoutedOneComeBack) {
  SimulatedJob job(2, disk());
  job.options.persistent.every = 1;
  job.options.persistent.plain_routed = true;
  job.ranks_per_node = 1;
  const auto expect_tree = [&](Engine& engine) {
    EXPECT_EQ(engine.open(), "a");
    EXPECT_EQ(engine.regions().size(), 1U) << "the file alone";
    for (const char* name : {"out/", "out/restart/"}) {
      const Routed in = engine.route_in(name);
      ASSERT_TRUE(in.status.ok()) << text_of(in.status.failure());
      const std::string out = in.path.substr(0, in.path.rfind("out/") + 4);
      for (const char* each : {"restart/parts", "restart/.hidden"}) {
        const auto status = job.disk.view(0)->status(out + each);
        EXPECT_TRUE(status && status->kind == fs::FileStatus::Kind::directory) << out << each;
      }
    }
    EXPECT_EQ(job.disk.read_all(engine.route_in("out/frames/1").path), content_of(0, 100));
    engine.close();
  };
  expect_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    engine.create("a");
    const std::string out = engine.route_out("out/").path;
    for (const char* each : {"restart/parts", "restart/.hidden", "frames"}) job.disk.make_directories(out + each);
    job.disk.write_all(out + "frames/1", content_of(0, 100));
    engine.commit();
    EXPECT_EQ(engine.level("a"), Level::persistent);
    expect_tree(engine);
  }));
  std::size_t plain = 0;
  for (const auto& [path, entry] : job.disk.snapshot()) {
    if (!path.starts_with("/prefix/a.") || !path.ends_with("/out/restart/parts")) continue;
    EXPECT_EQ(entry.status.kind, fs::FileStatus::Kind::directory);
    ++plain;
  }
  EXPECT_EQ(plain, 2U) << "also beside the manifest, for each rank";
  job.disk.remove_all("/nodes");
  expect_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    expect_tree(engine);
  }));
}

INSTANTIATE_TEST_SUITE_P(Storage, Routes, testing::Values(true, false),
                         [](const auto& each) { return each.param ? "Memory" : "Block"; });

/// What commit throws on both ranks if `prepare` treats the path that rank 1 was given; the next one works.
Failure commit_throws(const std::function<void(SimulatedJob&, const std::string& path)>& prepare,
                      std::uint64_t max_bytes = 1000) {
  SimulatedJob job(2);
  OnEachRank thrown(2);
  expect_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    commit_value(engine, "before", 1);
    engine.create("bad");
    if (scope.rank == 1) {
      const Routed out = engine.route_out("file", max_bytes);
      EXPECT_TRUE(out.status.ok());
      prepare(job, out.path);
    }
    thrown.put(scope.rank, failure_of([&] { engine.commit(); }));
    scope.communicator.barrier(Deadline::never());
    EXPECT_THAT(routed_files(job.disk), testing::IsEmpty());
    scope.communicator.barrier(Deadline::never());
    EXPECT_EQ(restore_value(engine), std::pair(std::optional<Tag>("before"), 1));

    engine.create("after");
    const Routed out = engine.route_out("file", 1000);
    job.disk.write_all(out.path, content_of(0, 1000));
    engine.commit();
    EXPECT_EQ(engine.open(), "after");
    EXPECT_EQ(job.disk.read_all(engine.route_in("file").path), content_of(0, 1000));
    engine.close();
  }));
  // Whatever was put there must not keep the run from starting again.
  expect_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    EXPECT_EQ(engine.open(), "after");
  }));
  const auto failure = thrown.same();
  EXPECT_TRUE(failure) << "commit threw nothing";
  if (failure) {
    EXPECT_EQ(failure->rank, 1);
  }
  return failure.value_or(Failure{});
}

TEST(Routes, AFileThatCannotBeTakenInFailsTheCommitOnAllRanks) {
  const Failure missing = commit_throws([](SimulatedJob&, const std::string&) {});
  EXPECT_EQ(missing.code, ErrorCode::not_found);
  EXPECT_THAT(missing.message, HasSubstr("'file'"));

  const Failure large =
      commit_throws([](SimulatedJob& job, const std::string& path) { job.disk.write_all(path, content_of(1, 1001)); });
  EXPECT_EQ(large.code, ErrorCode::invalid_argument);
  EXPECT_THAT(large.message, testing::AllOf(HasSubstr("1001"), HasSubstr("1000")));

  const Failure directory =
      commit_throws([](SimulatedJob& job, const std::string& path) { job.disk.make_directories(path); });
  EXPECT_EQ(directory.code, ErrorCode::invalid_argument);
  EXPECT_THAT(directory.message, testing::AllOf(HasSubstr("regular file"), HasSubstr("is a directory")));

  const Failure full_directory = commit_throws([](SimulatedJob& job, const std::string& path) {
    job.disk.make_directories(path);
    job.disk.write_all(path + "/inside", content_of(1, 10));
  });
  EXPECT_EQ(full_directory.code, ErrorCode::invalid_argument);

  const Failure link = commit_throws([](SimulatedJob& job, const std::string& path) {
    job.disk.write_all("/nodes/target", content_of(1, 10));
    job.disk.plant_link(path, "/nodes/target");
  });
  EXPECT_EQ(link.code, ErrorCode::invalid_argument);
  EXPECT_THAT(link.message, testing::AllOf(HasSubstr("regular file"), HasSubstr("is a symbolic link")));

  const Failure refused = commit_throws([](SimulatedJob& job, const std::string& path) {
    job.disk.write_all(path, content_of(1, 10));
    job.disk.refuse_open(path);
  });
  EXPECT_EQ(refused.code, ErrorCode::io);
  EXPECT_THAT(refused.path, HasSubstr("/file"));

  const Failure bad_block = commit_throws(
      [](SimulatedJob& job, const std::string& path) {
        job.disk.write_all(path, content_of(1, 5'000'000));
        job.disk.make_unreadable(path, 4'900'000);
      },
      0);
  EXPECT_EQ(bad_block.code, ErrorCode::io);
  EXPECT_THAT(bad_block.path, HasSubstr("/file"));
}

TEST(Routes, AFileThatTheStoreHasNoRoomForSaysNeededAndFree) {
  SimulatedJob job(2);
  job.options.store.quota_bytes = 2 << 20U;
  OnEachRank thrown(2);
  expect_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    commit_value(engine, "before", 1);
    engine.create("bad");
    const Routed out = engine.route_out("file");
    job.disk.write_all(out.path, content_of(0, scope.rank == 1 ? 3 << 20U : 10));
    thrown.put(scope.rank, failure_of([&] { engine.commit(); }));
    scope.communicator.barrier(Deadline::never());
    EXPECT_THAT(routed_files(job.disk), testing::IsEmpty());
    EXPECT_EQ(restore_value(engine), std::pair(std::optional<Tag>("before"), 1));
    commit_value(engine, "after", 2);
  }));
  const auto failure = thrown.same();
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->code, ErrorCode::no_space);
  EXPECT_EQ(failure->rank, 1);
  EXPECT_THAT(failure->message, testing::AllOf(HasSubstr("needs 3.0 MiB more"), HasSubstr("quota_bytes leaves"),
                                               HasSubstr("for the routed file 'file' of 3.0 MiB")));
}

TEST(Routes, ALimitThatNoFileCanHaveIsRefused) {
  SimulatedJob job(2);
  expect_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    engine.create("a");
    const Routed out = engine.route_out("file", ~std::uint64_t{0});
    EXPECT_EQ(code_of_status(out.status), ErrorCode::invalid_argument);
    EXPECT_TRUE(out.path.empty());
    EXPECT_EQ(code_of_status(engine.route_out("../file", 10).status), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { engine.commit(); }), ErrorCode::invalid_argument);
  }));
}

TEST(Routes, AFileMayNotTakeTheNameOfARegionNorOfAnotherFile) {
  for (const bool twice : {true, false}) {
    SimulatedJob job(2);
    expect_returned(job.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      engine.create("a");
      const std::int32_t value = 1;
      if (twice) job.disk.write_all(engine.route_out("name", 10).path, content_of(0, 5));
      else engine.save("name", {&value, DataType::int32, {}});
      const Routed out = engine.route_out("name", 10);
      EXPECT_EQ(out.status.ok(), !twice);
      EXPECT_EQ(out.path.empty(), twice) << "or the second would write over the first";
      if (!twice) job.disk.write_all(out.path, content_of(0, 5));
      EXPECT_EQ(code_of([&] { engine.commit(); }), ErrorCode::invalid_argument);
      scope.communicator.barrier(Deadline::never());
      EXPECT_THAT(routed_files(job.disk), testing::IsEmpty());
    }));
  }
}

TEST(Routes, AFileIsNoMemoryAndMemoryIsNoFile) {
  SimulatedJob job(2);
  OnEachRank loaded(2);
  OnEachRank routed(2);
  OnEachRank unknown(2);
  expect_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    engine.create("a");
    const std::array<std::byte, 8> bytes{};
    engine.save("memory", region(std::span<const std::byte>(bytes)));
    job.disk.write_all(engine.route_out("file", 8).path, bytes);
    engine.commit();

    EXPECT_EQ(engine.open(), "a");
    std::array<std::byte, 8> target{};
    if (scope.rank == 1) {
      EXPECT_FALSE(engine.load("file", mutable_region(std::span<std::byte>(target))).ok());
    }
    loaded.put(scope.rank, failure_of([&] { engine.close(); }));
    EXPECT_EQ(engine.open(), "a");
    if (scope.rank == 0) {
      EXPECT_FALSE(engine.route_in("memory").status.ok());
    }
    routed.put(scope.rank, failure_of([&] { engine.close(); }));
    EXPECT_EQ(engine.open(), "a");
    if (scope.rank == 0) {
      EXPECT_FALSE(engine.route_in("nothing").status.ok());
    }
    unknown.put(scope.rank, failure_of([&] { engine.close(); }));
  }));
  ASSERT_TRUE(loaded.same() && routed.same() && unknown.same());
  EXPECT_EQ(loaded.same()->code, ErrorCode::mismatch);
  EXPECT_THAT(loaded.same()->message, HasSubstr("route_in"));
  EXPECT_EQ(routed.same()->code, ErrorCode::mismatch);
  EXPECT_THAT(routed.same()->message, HasSubstr("load"));
  EXPECT_EQ(unknown.same()->code, ErrorCode::not_found);
}

TEST(Routes, AbandonFinalizeAndCloseRemoveTheirFiles) {
  SimulatedJob job(2);
  expect_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    engine.create("a");
    job.disk.write_all(engine.route_out("file", 8).path, content_of(0, 8));
    engine.abandon();
    EXPECT_EQ(engine.open(), std::nullopt);
    engine.create("b");
    job.disk.write_all(engine.route_out("file", 8).path, content_of(0, 8));
    engine.commit();
    EXPECT_EQ(engine.open(), "b");
    EXPECT_TRUE(engine.route_in("file").status.ok());
    EXPECT_TRUE(engine.route_in("file").status.ok()) << "twice gives two";
    engine.finalize();
  }));
  EXPECT_THAT(routed_files(job.disk), testing::IsEmpty());
  expect_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    engine.create("c");
    job.disk.write_all(engine.route_out("file", 8).path, content_of(0, 8));
    engine.finalize();
  }));
  EXPECT_THAT(routed_files(job.disk), testing::IsEmpty());
}

TEST(Routes, WhatACrashedStartLeftIsSweptByTheNext) {
  SimulatedJob job(2);
  expect_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    engine.create("a");
    job.disk.write_all(engine.route_out("one", 8).path, content_of(0, 8));
    engine.commit();
    EXPECT_EQ(engine.open(), "a");
    (void)engine.route_in("one");
    // Gone without close: as if killed here.
  }));
  expect_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    engine.create("b");
    job.disk.write_all(engine.route_out("two", 8).path, content_of(0, 8));
  }));
  EXPECT_EQ(routed_files(job.disk).size(), 4U) << "one of each rank, in a directory of its own";
  expect_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    scope.communicator.barrier(Deadline::never());
    EXPECT_THAT(routed_files(job.disk), testing::IsEmpty());
    EXPECT_EQ(engine.open(), "a");
  }));
}

TEST(Routes, EverythingThatIsMadeLiesBelowTheRunsDirectories) {
  SimulatedJob job(2);
  const auto before = job.disk.snapshot();
  expect_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    engine.create("a");
    job.disk.write_all(engine.route_out("file", 8).path, content_of(0, 8));
    engine.commit();
    engine.finalize();
  }));
  for (const auto& [path, entry] : job.disk.snapshot()) {
    if (before.contains(path) || path == "/nodes/node0") continue;
    const bool inside = path.starts_with("/nodes/node0/kedge-1000-test-") || path.starts_with("/prefix/");
    EXPECT_TRUE(inside) << path;
  }
}

}  // namespace
}  // namespace kedge::faults::routes_test
