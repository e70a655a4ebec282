// persistent.plain_routed: routed files lie plain beside the manifest, exactly as long as their commit does.
#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>

#include "harness/engine_checks.hpp"
#include "harness/flush_fixture.hpp"
#include "harness/forwarding_file_system.hpp"
#include "harness/redundancy_history.hpp"
#include "harness/slow_to_remove.hpp"

namespace kedge::faults::plain_routed_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::byte> content_of(std::string_view tag, int rank, std::size_t size_bytes) {
  std::vector<std::byte> content(size_bytes);
  const auto seed = static_cast<unsigned>(rank) + static_cast<unsigned>(tag.back());
  for (std::size_t i = 0; i < size_bytes; ++i) content[i] = static_cast<std::byte>(i * 7 + i / 4099 + seed);
  return content;
}

constexpr std::size_t kLarge = 100'000;
constexpr std::size_t kSmall = 300;

class PlainRouted : public FlushFixture {
 protected:
  struct Job : PersistentJob {
    explicit Job(int rank_count = 2, DiskOptions disk_options = memory_disk())
        : PersistentJob(rank_count, std::move(disk_options)) {
      options.persistent.plain_routed = true;
    }
  };
  /// Two routed files on each rank, one of them in a directory, and a region.
  static void commit(SimulatedJob& job, Engine& engine, int rank, const std::string& tag) {
    engine.create(tag);
    const std::int32_t value = 1;
    engine.save("value", {&value, DataType::int32, {}});
    const Routed one = engine.route_out("restart");
    if (one.status) job.disk.write_all(one.path, content_of(tag, rank, kLarge));
    const Routed two = engine.route_out("out/deep/" + std::to_string(rank));
    if (two.status) job.disk.write_all(two.path, content_of(tag, rank, kSmall));
    engine.commit();
  }
  static auto run(SimulatedJob& job, const std::vector<std::string>& tags, Crash crash = Crash::process,
                  std::uint64_t seed = 0) {
    return job.start(
        [&](RankScope& scope) {
          Engine engine = scope.make_engine();
          for (const std::string& tag : tags) commit(job, engine, scope.rank, tag);
        },
        crash, seed);
  }
  /// Paths of plain files and their directories below a tag directory.
  static std::vector<std::string> plain_names(SimulatedJob& job) {
    std::vector<std::string> names;
    for (const auto& [path, entry] : job.disk.snapshot()) {
      if (path.starts_with("/prefix/") && path.find("/files") != std::string::npos) names.push_back(path);
    }
    return names;
  }
  static void expect_plain(SimulatedJob& job, const persist::TagEntry& entry, const std::string& where) {
    const auto disk = job.disk.snapshot();
    for (int rank = 0; rank < job.ranks; ++rank) {
      const std::string mine = compose("/prefix/{}/files/0/rank-{}/", entry.directory, rank);
      for (const auto& [path, size] :
           {std::pair(mine + "restart", kLarge), std::pair(mine + "out/deep/" + std::to_string(rank), kSmall)}) {
        ASSERT_TRUE(disk.contains(path)) << where << ": " << path;
        EXPECT_TRUE(disk.at(path).bytes == content_of(entry.commit.tag, rank, size)) << where << ": " << path;
      }
    }
  }
  /// Where there is a commit, its files are; where there is none, nothing of them is.
  static void expect_with_their_commits(SimulatedJob& job, const std::string& where) {
    const auto entries = list(job).entries;
    for (const auto& entry : entries) expect_plain(job, entry, where);
    for (const std::string& path : plain_names(job)) {
      EXPECT_TRUE(
          std::ranges::any_of(entries, [&](const auto& entry) { return path.find(entry.directory) != path.npos; }))
          << where << ": left behind: " << path;
    }
  }
};

TEST_F(PlainRouted, FilesLieBesideTheManifestUnderTheirNamesAndModes) {
  Job job;
  job.options.persistent.mode = "0750";
  expect_returned(run(job, {"a"}));
  ASSERT_THAT(tags(job), ElementsAre("a"));
  expect_plain(job, list(job).entries[0], "committed");
  const auto disk = job.disk.snapshot();
  const std::string files = directory_of(job, "a") + "/files";
  for (const char* name : {"", "/0", "/0/rank-1", "/0/rank-1/out", "/0/rank-1/out/deep"}) {
    EXPECT_EQ(disk.at(files + name).status.mode, 0750U) << name;
  }
  EXPECT_EQ(disk.at(files + "/0/rank-1/restart").status.mode, 0640U);
}

TEST_F(PlainRouted, WithoutTheOptionOrWithoutFilesThereIsNothing) {
  Job without;
  without.options.persistent.plain_routed = false;
  expect_returned(run(without, {"a"}));
  EXPECT_THAT(plain_names(without), IsEmpty());
  Job none;
  expect_returned(none.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    commit_value(engine, "a", 1);
  }));
  EXPECT_THAT(tags(none), ElementsAre("a"));
  EXPECT_THAT(plain_names(none), IsEmpty());
}

TEST_F(PlainRouted, TheyGoWithTheirCommitAndWhatIsNotKedgesStays) {
  Job job;
  job.options.persistent.keep = 1;
  expect_returned(run(job, {"a"}));
  const std::string kept = directory_of(job, "a") + "/files/notes.txt";
  const std::string named = directory_of(job, "a") + "/files/0/rank-of-mine/notes.txt";
  job.disk.make_directories(named.substr(0, named.rfind('/')), 0755);
  job.disk.write_all(named, content_of("a", 0, 10));
  const std::string linked = directory_of(job, "a") + "/files/0/rank-0/link";
  job.disk.write_all(kept, content_of("a", 0, 10));
  job.disk.make_directories("/elsewhere/mine");
  job.disk.plant_link(linked, "/elsewhere");
  expect_returned(run(job, {"b", "c"}));
  EXPECT_THAT(tags(job), ElementsAre("c"));
  expect_plain(job, list(job).entries[0], "c");
  std::vector<std::string> left = plain_names(job);
  std::erase_if(left, [&](const std::string& path) { return path.starts_with(directory_of(job, "c")); });
  const std::string files = kept.substr(0, kept.rfind('/'));
  EXPECT_THAT(left, ElementsAre(files, files + "/0", files + "/0/rank-of-mine", named, kept));
  EXPECT_TRUE(job.disk.snapshot().contains("/elsewhere/mine"));
}

/// Says when rank 1 removes a plain file.
class WatchedRemovals final : public ForwardingFileSystem {
 public:
  WatchedRemovals(std::shared_ptr<fs::FileSystem> inner, std::atomic<int>& removed)
      : ForwardingFileSystem(std::move(inner)), removed_(removed) {}
  void remove(const std::string& path) override {
    if (path.ends_with("/files/0/rank-1/restart") && inner().status(path)) ++removed_;
    inner().remove(path);
  }

 private:
  std::atomic<int>& removed_;
};

TEST_F(PlainRouted, TheirRemovalIsSharedOutLikeThatOfContainers) {
  Job job;
  job.options.persistent.keep = 1;
  std::atomic<int> removed = 0;
  job.surroundings = [&](int rank, start::Environment& environment) {
    if (rank == 0) return;
    environment.file_system = std::make_shared<WatchedRemovals>(environment.file_system, removed);
  };
  expect_returned(run(job, {"a", "b", "c"}));
  EXPECT_THAT(tags(job), ElementsAre("c"));
  EXPECT_EQ(removed, 2);
}

/// A rank may have as many as it likes, and the others wait for it.
TEST_F(PlainRouted, ManyThatAreRemovedSlowlyGoPieceByPiece) {
  constexpr int kFiles = 30;
  constexpr double kEachTakes_s = 1;
  Job job(1);
  const auto commit_many = [&](Engine& engine, const Tag& tag) {
    engine.create(tag);
    for (int i = 0; i < kFiles; ++i) {
      const Routed file = engine.route_out(compose("out/{}", i));
      if (file.status) job.disk.write_all(file.path, content_of(tag, 0, kSmall));
    }
    engine.commit();
  };
  job.options.persistent.keep = 1;
  auto clock = std::make_shared<FakeClock>();
  job.surroundings = [&](int, start::Environment& environment) {
    environment.clock = clock;
    environment.file_system = std::make_shared<SlowToRemove>(environment.file_system, clock, kEachTakes_s);
  };
  expect_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    commit_many(engine, "a");
    for (const Tag tag : {"b", "c", "d"}) {
      const double begun_at = clock->seconds();
      commit_many(engine, tag);
      EXPECT_LT(clock->seconds() - begun_at, kFiles / 2) << tag;
    }
  }));
  EXPECT_THAT(tags(job), ElementsAre("d"));
  EXPECT_GT(plain_names(job).size(), std::size_t{2} * kFiles);
  job.surroundings = nullptr;
  expect_returned(run(job, {"e"}));
  EXPECT_THAT(tags(job), ElementsAre("e"));
  for (const std::string& name : plain_names(job)) EXPECT_TRUE(name.starts_with(directory_of(job, "e"))) << name;
}

TEST_F(PlainRouted, SpaceForThemIsCheckedBeforeAnythingIsWritten) {
  Job job;
  Volume small;
  small.capacity_bytes = 450'000;  // two containers of 130 KB, not their files as well
  job.disk.set_volume("/prefix", small);
  expect_returned(run(job, {"a"}));
  EXPECT_THAT(tags(job), IsEmpty());
  EXPECT_TRUE(job.logged("the prefix has"));
  EXPECT_THAT(plain_names(job), IsEmpty());
  job.options.persistent.plain_routed = false;
  expect_returned(run(job, {"b"}));
  EXPECT_THAT(tags(job), ElementsAre("b")) << "it was the plain files that did not fit";
}

TEST_F(PlainRouted, ALinkInTheirPlaceIsNotFollowedAndFailsTheFlushAlone) {
  Job job;
  expect_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    commit(job, engine, scope.rank, "a");
    engine.finalize();
  }));
  // What somebody who may write there could do: the next attempt on the same name finds it.
  const std::string directory = directory_of(job, "a");
  job.disk.make_directories("/elsewhere", 0755);
  job.disk.remove_all(directory + "/checkpoint.h5");
  job.disk.remove_all(directory + "/files/0/rank-1");
  job.disk.plant_link(directory + "/files/0/rank-1", "/elsewhere");
  OnEachRank thrown(2);
  expect_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    EXPECT_EQ(engine.open("a"), "a");
    engine.close();
    thrown.put(scope.rank, failure_of([&] { engine.wait("a", Level::persistent); }));
  }));
  ASSERT_TRUE(thrown.same());
  EXPECT_EQ(thrown.same()->code, ErrorCode::io);
  EXPECT_EQ(thrown.same()->rank, 1);
  for (const auto& [path, entry] : job.disk.snapshot()) EXPECT_FALSE(path.starts_with("/elsewhere/")) << path;
}

/// EIO at each operation of one rank: the flush fails or what it says is true, and the next one does it all.
TEST_F(PlainRouted, AnErrorAtAnyOperationFailsTheFlushAloneAndLeavesNothing) {
  Job job;
  const auto empty = job.disk.snapshot();
  expect_returned(run(job, {"a"}));
  const auto operations = job.operations;
  int failed = 0;
  for (const int rank : {0, 1}) {
    const std::uint64_t last = operations[static_cast<std::size_t>(rank)];
    for (std::uint64_t n = last / 2; n <= last; ++n) {
      const std::string where = compose("rank {}, operation {}", rank, n);
      job.disk.restore(empty);
      job.disk.fail(rank, n, EIO);
      (void)job.start([&](RankScope& scope) {
        Engine engine = scope.make_engine();
        // One that fails is one that says so, on all ranks.
        const auto failure = failure_of([&] { commit(job, engine, scope.rank, "a"); });
        if (failure) return;
        job.disk.heal(scope.rank);
        commit(job, engine, scope.rank, "b");
        EXPECT_EQ(engine.level("b"), Level::persistent) << where;
      });
      if (!job.disk.snapshot().contains("/prefix/latest")) continue;
      if (tags(job).size() < 2) ++failed;
      expect_with_their_commits(job, where);
      if (HasFailure()) return;
    }
  }
  EXPECT_GT(failed, 5);
}

/// Every mutating operation is a point at which one rank, or all, die; also with the power, when what was not synced is
/// lost or not by seed.
TEST_F(PlainRouted, ADeathAtEveryOperationLeavesTheWholeCommitOrNone) {
  for (const Crash crash : {Crash::process, Crash::power}) {
    Job job(2, crash == Crash::power ? SimulatedJob::block_disk() : SimulatedJob::memory_disk());
    job.options.persistent.keep = 1;
    const auto empty = job.disk.snapshot();
    expect_returned(run(job, {"a", "b"}));
    auto chosen = points(crash == Crash::power ? "plain files and power" : "plain files", job.operations, 12,
                         crash == Crash::power ? Deaths::together : Deaths::both);
    if (crash == Crash::power) {
      for (std::uint64_t n = 100'000; n < 100'020; ++n) chosen.push_back({0, n, true});  // right after the last commit
    }
    for (const Point& point : chosen) {
      job.disk.restore(empty);
      plan(job, point);
      (void)run(job, {"a", "b"}, crash, point.n);
      job.kill_all_ranks = false;
      for (const auto& entry : list(job).entries) expect_plain(job, entry, describe(point));
      (void)run(job, {"c"});
      ASSERT_FALSE(tags(job).empty()) << describe(point);
      EXPECT_EQ(tags(job).front(), "c") << describe(point);
      expect_with_their_commits(job, describe(point) + ", and the next start");
      if (HasFailure()) return;
    }
  }
}

}  // namespace
}  // namespace kedge::faults::plain_routed_test
