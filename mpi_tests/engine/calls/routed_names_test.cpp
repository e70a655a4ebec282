// Where routed files lie while the application has them: under the names that it gave, in directories, beside others;
// what a dead start left is removed, and unreadable files are refused.
#include <gmock/gmock.h>

#include <algorithm>
#include <functional>

#include "harness/routed_checks.hpp"

namespace kedge::faults::routed_names_test {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;

std::string directory_of(const std::string& path) { return path.substr(0, path.rfind('/')); }

TEST(RoutedNames, ThePathEndsInTheNameAndItsDirectoriesAreThere) {
  SimulatedJob job(2);
  expect_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    engine.create("a");
    const Routed plain = engine.route_out("restart.mpiio");
    const Routed deep = engine.route_out("out/deep/restart.3");
    ASSERT_TRUE(plain.status.ok() && deep.status.ok());
    EXPECT_THAT(plain.path, EndsWith("/restart.mpiio"));
    EXPECT_THAT(deep.path, EndsWith("/out/deep/restart.3"));
    EXPECT_EQ(directory_of(plain.path) + "/out/deep/restart.3", deep.path) << "all of a rank in one directory";
    const auto disk = job.disk.snapshot();
    for (const std::string& path : {directory_of(plain.path), directory_of(deep.path)}) {
      ASSERT_TRUE(disk.contains(path)) << path;
      EXPECT_EQ(disk.at(path).status.kind, fs::FileStatus::Kind::directory);
      EXPECT_EQ(disk.at(path).status.mode, 0700U);
    }
    const auto seed = static_cast<unsigned>(scope.rank);
    job.disk.write_all(plain.path, content_of(seed, 100'000));
    job.disk.write_all(deep.path, content_of(seed + 10, 10));
    engine.commit();
    scope.communicator.barrier(Deadline::never());
    EXPECT_THAT(routed_files(job.disk), IsEmpty());
    scope.communicator.barrier(Deadline::never());

    EXPECT_EQ(engine.open(), "a");
    const Routed deep_in = engine.route_in("out/deep/restart.3");
    const Routed plain_in = engine.route_in("restart.mpiio");
    EXPECT_EQ(directory_of(plain_in.path) + "/out/deep/restart.3", deep_in.path);
    EXPECT_EQ(job.disk.read_all(plain_in.path), content_of(seed, 100'000));
    EXPECT_EQ(job.disk.read_all(deep_in.path), content_of(seed + 10, 10));
    engine.close();
    scope.communicator.barrier(Deadline::never());
    EXPECT_THAT(routed_files(job.disk), IsEmpty());
  }));
}

/// A link in the place of a directory leads to what is not the route's: it is neither stored nor removed.
TEST(RoutedNames, ALinkOnTheWayFailsTheCommitOnAllRanksAndIsNotFollowed) {
  for (const std::string name : {"p/file", "p/q/"}) {
    SimulatedJob job(2);
    OnEachRank met(2);
    job.disk.make_directories("/outside/q");
    job.disk.write_all("/outside/file", content_of(1, 100));
    job.disk.write_all("/outside/q/file", content_of(2, 100));
    expect_returned(job.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      engine.create("a");
      const Routed out = engine.route_out(name);
      if (scope.rank == 1) {
        const std::string directory = out.path.substr(0, out.path.rfind("/p/") + 2);
        job.disk.remove_all(directory);
        job.disk.plant_link(directory, "/outside");
      } else if (!name.ends_with('/')) {
        job.disk.write_all(out.path, content_of(3, 10));
      }
      met.put(scope.rank, failure_of([&] { engine.commit(); }));
    }));
    ASSERT_TRUE(met.same()) << name;
    EXPECT_EQ(met.same()->code, ErrorCode::invalid_argument);
    EXPECT_EQ(met.same()->rank, 1);
    EXPECT_EQ(job.disk.read_all("/outside/file"), content_of(1, 100));
    EXPECT_EQ(job.disk.read_all("/outside/q/file"), content_of(2, 100));
  }
}

TEST(RoutedNames, CheckpointsAndRanksDoNotShareADirectory) {
  SimulatedJob job(2);
  std::vector<std::string> paths(4);
  expect_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    const auto mine = static_cast<std::size_t>(scope.rank) * 2;
    engine.create("a");
    paths[mine] = engine.route_out("file").path;
    job.disk.write_all(paths[mine], content_of(0, 8));
    engine.commit();
    EXPECT_EQ(engine.open(), "a");
    paths[mine + 1] = engine.route_in("file").path;
    engine.close();
  }));
  std::ranges::sort(paths);
  EXPECT_EQ(std::ranges::adjacent_find(paths), paths.end());
}

TEST(RoutedNames, WhatElseLiesBesideThemGoesToo) {
  SimulatedJob job(1);
  job.options.log.level = LogLevel::debug;
  on_one_rank(job, [&](Engine& engine) {
    engine.create("a");
    const Routed out = engine.route_out("restart");
    // As codes do it: written beside and renamed, with a backup of the one before.
    job.disk.write_all(out.path + ".tmp", content_of(1, 1000));
    job.disk.view(0)->rename(out.path + ".tmp", out.path);
    job.disk.write_all(out.path + ".old", content_of(2, 1000));
    job.disk.make_directories(directory_of(out.path) + "/scratch/deep");
    job.disk.write_all(directory_of(out.path) + "/scratch/deep/notes", content_of(2, 10));
    job.disk.plant_link(directory_of(out.path) + "/scratch/link", "/nodes");
    engine.commit();
    EXPECT_THAT(routed_files(job.disk), IsEmpty());
    EXPECT_TRUE(job.disk.snapshot().contains("/nodes")) << "links are removed, not followed";
    EXPECT_TRUE(job.logged("removed 3 files for which route_out was not called: restart.old, ..."));

    EXPECT_FALSE(job.logged("could not be removed"));

    EXPECT_EQ(engine.open(), "a");
    EXPECT_EQ(engine.regions().size(), 1U);
    const Routed in = engine.route_in("restart");
    EXPECT_EQ(job.disk.read_all(in.path), content_of(1, 1000));
    job.disk.write_all(in.path + ".lock", content_of(0, 1));
    engine.close();
    EXPECT_THAT(routed_files(job.disk), IsEmpty());
  });
}

TEST(RoutedNames, NamesThatCannotLieBesideEachOtherAreRefusedAtOnce) {
  for (const auto& [first, second] : std::vector<std::pair<std::string, std::string>>{
           {"a", "a"}, {"a", "a/b"}, {"a/b", "a"}, {"a/", "a"}, {"a", "a/"}, {"a/", "a/b"}, {"a/b/", "a/"}}) {
    SimulatedJob job(2);
    OnEachRank thrown(2);
    expect_returned(job.start([&, first = first, second = second](RankScope& scope) {
      Engine engine = scope.make_engine();
      engine.create("a");
      ASSERT_TRUE(engine.route_out(first).status.ok());
      if (scope.rank == 1) {
        const Routed refused = engine.route_out(second);
        EXPECT_EQ(code_of_status(refused.status), ErrorCode::invalid_argument) << first << " " << second;
        EXPECT_TRUE(refused.path.empty());
      }
      thrown.put(scope.rank, failure_of([&] { engine.commit(); }));
      engine.create("b");
      job.disk.write_all(engine.route_out("ab").path, content_of(0, 1));
      job.disk.write_all(engine.route_out("a/c").path, content_of(0, 1));
      job.disk.write_all(engine.route_out("a/d").path, content_of(0, 1));
      engine.commit();
    }));
    ASSERT_TRUE(thrown.same());
    EXPECT_THAT(thrown.same()->message, HasSubstr("'" + first + "'"));
  }
}

TEST(RoutedNames, NamesThatNoFileCanHaveAreRefused) {
  SimulatedJob job(1);
  on_one_rank(job, [&](Engine& engine) {
    for (const std::string& name : {std::string("../out"), std::string("a//b"), std::string("/tmp/file"),
                                    std::string("/"), std::string(""), std::string(".kedge/x"), std::string("a/./b"),
                                    std::string("a//"), std::string(256, 'x'), "a/" + std::string(256, 'x') + "/b"}) {
      engine.create("a");
      const Routed out = engine.route_out(name);
      EXPECT_EQ(code_of_status(out.status), ErrorCode::invalid_argument) << name;
      EXPECT_TRUE(out.path.empty());
      EXPECT_EQ(code_of([&] { engine.commit(); }), ErrorCode::invalid_argument);
      EXPECT_THAT(routed_files(job.disk), IsEmpty());
    }
    engine.create("a");
    const std::string longest(255, 'x');
    job.disk.write_all(engine.route_out(longest).path, content_of(0, 1));
    engine.commit();
  });
}

/// A C program has KEDGE_PATH_SIZE bytes for it, and the system takes no more.
TEST(RoutedNames, APathThatIsTooLongIsRefused) {
  SimulatedJob job(1);
  job.options.store.path = "/nodes";
  for (int i = 0; i < 15; ++i) job.options.store.path += "/" + std::string(230, 'd');
  on_one_rank(job, [&](Engine& engine) {
    const std::string part(250, 'x');
    engine.create("a");
    EXPECT_TRUE(engine.route_out(part + "/" + part).status.ok());
    const Routed out = engine.route_out("y/" + part + "/" + part + "/" + part);
    EXPECT_EQ(code_of_status(out.status), ErrorCode::invalid_argument);
    EXPECT_TRUE(out.path.empty());
    engine.abandon();
  });
}

TEST(RoutedNames, WithoutABoundAFileMayHaveAnySize) {
  SimulatedJob job(1);
  on_one_rank(job, [&](Engine& engine) {
    for (const std::size_t size : {std::size_t{0}, std::size_t{20'000'000}, std::size_t{10}, std::size_t{30'000'000}}) {
      engine.create("a");
      job.disk.write_all(engine.route_out("file").path, content_of(3, size));
      engine.commit();
      EXPECT_EQ(engine.open(), "a");
      EXPECT_EQ(job.disk.read_all(engine.route_in("file").path), content_of(3, size));
      engine.close();
    }
  });
}

/// LAMMPS's `write_restart restart.%`: one file from each rank, a base file from rank 0, composed by the code itself.
TEST(RoutedNames, FilesThatACodeNamesItselfAreRoutedByTheirDirectory) {
  SimulatedJob job(3);
  const auto body = [&](RankScope& scope, Engine& engine, const std::string& directory, const auto& each) {
    each(directory + "restart." + std::to_string(scope.rank), static_cast<unsigned>(scope.rank));
    each(directory + "levels/" + std::to_string(scope.rank) + "/cells", static_cast<unsigned>(scope.rank) + 50);
    if (scope.rank == 0) each(directory + "restart.base", 99);
    (void)engine;
  };
  expect_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    engine.create("a");
    const Routed out = engine.route_out("dump/");
    ASSERT_TRUE(out.status.ok());
    EXPECT_THAT(out.path, EndsWith("/dump/"));
    job.disk.make_directories(out.path + "levels/" + std::to_string(scope.rank));
    job.disk.make_directories(out.path + "empty");
    body(scope, engine, out.path,
         [&](const std::string& path, unsigned seed) { job.disk.write_all(path, content_of(seed, 70'000 + seed)); });
    engine.commit();
  }));
  EXPECT_THAT(routed_files(job.disk), IsEmpty());
  expect_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    EXPECT_EQ(engine.open(), "a");
    EXPECT_EQ(engine.regions().size(), scope.rank == 0 ? 3U : 2U);
    const Routed in = engine.route_in("dump/");
    ASSERT_TRUE(in.status.ok()) << text_of(in.status.failure());
    EXPECT_THAT(in.path, EndsWith("/dump/"));
    body(scope, engine, in.path, [&](const std::string& path, unsigned seed) {
      EXPECT_EQ(job.disk.read_all(path), content_of(seed, 70'000 + seed)) << path;
    });
    const std::string one = "dump/restart." + std::to_string(scope.rank);
    const Routed single = engine.route_in(one);
    EXPECT_THAT(single.path, EndsWith(one));
    EXPECT_EQ(job.disk.read_all(single.path).size(), 70'000U + static_cast<unsigned>(scope.rank));
    EXPECT_NE(single.path, in.path + "restart." + std::to_string(scope.rank)) << "the application may have changed it";
    engine.close();
  }));
  EXPECT_THAT(routed_files(job.disk), IsEmpty());
}

TEST(RoutedNames, ARankThatWroteNothingIntoItsDirectoryGetsAnEmptyOne) {
  SimulatedJob job(2);
  expect_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    engine.create("a");
    const Routed out = engine.route_out("dump/", 1000);
    if (scope.rank == 0) job.disk.write_all(out.path + "base", content_of(0, 1000));
    engine.commit();
    EXPECT_EQ(engine.open(), "a");
    const Routed in = engine.route_in("dump/");
    ASSERT_TRUE(in.status.ok());
    EXPECT_EQ(job.disk.snapshot().contains(in.path + "base"), scope.rank == 0);
    EXPECT_TRUE(job.disk.snapshot().contains(directory_of(in.path)));
    engine.close();
  }));
}

/// What commit throws on both ranks when rank 1 does this to the directory that it was given.
Failure commit_throws(const std::function<void(FaultyDisk&, const std::string& directory)>& prepare) {
  SimulatedJob job(2);
  OnEachRank thrown(2);
  expect_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    commit_value(engine, "before", 1);
    engine.create("bad");
    const Routed out = engine.route_out("dump/", 1000);
    job.disk.write_all(out.path + "good", content_of(0, 10));
    if (scope.rank == 1) prepare(job.disk, out.path);
    thrown.put(scope.rank, failure_of([&] { engine.commit(); }));
    scope.communicator.barrier(Deadline::never());
    EXPECT_THAT(routed_files(job.disk), IsEmpty());
    EXPECT_EQ(restore_value(engine), std::pair(std::optional<Tag>("before"), 1));
    commit_value(engine, "after", 2);
  }));
  EXPECT_TRUE(thrown.same());
  return thrown.same().value_or(Failure{});
}

TEST(RoutedNames, ADirectoryThatCannotBeTakenInFailsTheCommitOnAllRanks) {
  const Failure large = commit_throws(
      [](FaultyDisk& disk, const std::string& directory) { disk.write_all(directory + "more", content_of(0, 991)); });
  EXPECT_EQ(large.code, ErrorCode::invalid_argument);
  EXPECT_THAT(large.message, testing::AllOf(HasSubstr("1001 bytes"), HasSubstr("maximum of 1000")));
  EXPECT_EQ(large.rank, 1);

  const Failure link = commit_throws(
      [](FaultyDisk& disk, const std::string& directory) { disk.plant_link(directory + "link", "/nodes"); });
  EXPECT_EQ(link.code, ErrorCode::invalid_argument);
  EXPECT_THAT(link.path, EndsWith("/dump/link"));

  const Failure gone =
      commit_throws([](FaultyDisk& disk, const std::string& directory) { disk.remove_all(directory_of(directory)); });
  EXPECT_EQ(gone.code, ErrorCode::not_found);

  const Failure name = commit_throws(
      [](FaultyDisk& disk, const std::string& directory) { disk.write_all(directory + "\xff", content_of(0, 1)); });
  EXPECT_EQ(name.code, ErrorCode::invalid_argument);
  EXPECT_THAT(name.message, HasSubstr("UTF-8"));

  const Failure bad_block = commit_throws(
      [](FaultyDisk& disk, const std::string& directory) { disk.make_unreadable(directory + "good", 0); });
  EXPECT_EQ(bad_block.code, ErrorCode::io);
  EXPECT_THAT(bad_block.path, EndsWith("/dump/good"));
}

TEST(RoutedNames, AnExtractionThatFailsOnOneRankFailsTheCloseOnAll) {
  SimulatedJob job(2);
  OnEachRank thrown(2);
  expect_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    engine.create("a");
    const Routed out = engine.route_out("dump/");
    for (const char* name : {"one", "two"}) job.disk.write_all(out.path + name, content_of(0, 100'000));
    engine.commit();
    EXPECT_EQ(engine.open(), "a");
    if (scope.rank == 1) job.disk.fail(1, job.disk.operations(1) + 4, EIO);
    const Routed in = engine.route_in("dump/");
    EXPECT_EQ(in.status.ok(), scope.rank == 0);
    thrown.put(scope.rank, failure_of([&] { engine.close(); }));
    scope.communicator.barrier(Deadline::never());
    EXPECT_THAT(routed_files(job.disk), IsEmpty());
    scope.communicator.barrier(Deadline::never());
    EXPECT_EQ(engine.open(), "a") << "it is not the checkpoint's fault";
    EXPECT_EQ(job.disk.read_all(engine.route_in("dump/").path + "two"), content_of(0, 100'000));
    engine.close();
  }));
  ASSERT_TRUE(thrown.same());
  EXPECT_EQ(thrown.same()->code, ErrorCode::io);
  EXPECT_EQ(thrown.same()->rank, 1);
}

TEST(RoutedNames, DirectoriesOfADeadStartAreSweptWhateverIsInThem) {
  SimulatedJob job(2);
  std::vector<std::string> paths(2);
  expect_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    engine.create("a");
    std::string& path = paths[static_cast<std::size_t>(scope.rank)];
    path = engine.route_out("out/deep/file").path;
    job.disk.write_all(path, content_of(0, 8));
    job.disk.plant_link(directory_of(path) + "/link", "/nodes");
  }));
  EXPECT_EQ(routed_files(job.disk).size(), 10U);
  expect_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    scope.communicator.barrier(Deadline::never());
    EXPECT_THAT(routed_files(job.disk), IsEmpty());
    engine.create("b");
    job.disk.write_all(engine.route_out("file").path, content_of(0, 8));
    engine.commit();
  }));
}

}  // namespace
}  // namespace kedge::faults::routed_names_test
