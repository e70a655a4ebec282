// What a flush leaves on the prefix, and how it comes back when the stores cannot give it: in place, rebuilt and
// fetched in one recovery, the newest wherever it is; latest and the catalog are not trusted, what keep and pin say
// stays, a manifest is kept in two failure domains, and an unchanged structure costs no HDF5 call.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text.hpp"
#include "format/hdf5_structure.hpp"
#include "harness/flush_fixture.hpp"
#include "harness/several_starts.hpp"
#include "persist/tag_catalog.hpp"
#include "persist/tag_directory.hpp"
#include "persist/tags.hpp"

namespace kedge::faults::flush_test {
namespace {

class FlushTest : public FlushFixture {};

TEST_F(FlushTest, AllStoresLostComesBackFromThePrefix) {
  PersistentJob job(4);
  commit_steps(job, {{"a", 1}, {"b", 2}});
  job.disk.remove_all("/nodes");
  const Opened opened = reopen(job);
  EXPECT_EQ(opened.tag, "b");
  EXPECT_EQ(opened.step, 2);
  EXPECT_EQ(opened.info.source, RecoverySource::fetched);
  EXPECT_EQ(opened.level, Level::persistent);
  // The stores have it again, protected as before.
  lose_stores(job, {1});
  const Opened again = reopen(job);
  EXPECT_EQ(again.step, 2);
  EXPECT_EQ(again.info.source, RecoverySource::rebuilt);
}

TEST_F(FlushTest, TwoNodesOfOneSetAreFetched) {
  PersistentJob job(4);
  commit_steps(job, {{"a", 1}});
  lose_stores(job, {1, 2});
  const Opened opened = reopen(job);
  EXPECT_EQ(opened.step, 1);
  EXPECT_EQ(opened.info.source, RecoverySource::fetched);
  EXPECT_TRUE(job.logged("2 containers in place, 2 fetched"));
}

TEST_F(FlushTest, InPlaceRebuiltAndFetchedInOneRecovery) {
  PersistentJob job(6);
  job.options.redundancy.set_size = 3;  // the sets of ranks 0 2 4 and 1 3 5
  commit_steps(job, {{"a", 1}});
  lose_stores(job, {0, 1, 3});
  const Opened opened = reopen(job);
  EXPECT_EQ(opened.step, 1);
  EXPECT_EQ(opened.info.source, RecoverySource::fetched);
  EXPECT_TRUE(job.logged("3 containers in place, 1 rebuilt, 2 fetched"));
}

TEST_F(FlushTest, TheNewestWinsWhereverItIs) {
  PersistentJob job(3);
  commit_steps(job, {{"a", 1}});
  const auto stores = job.disk.snapshot();
  reopen(job, latest, Newer::keep, {{"b", 2}});
  const auto both = job.disk.snapshot();
  // The stores fell back to "a", the prefix has "b".
  job.disk.restore(stores, "/nodes");
  EXPECT_EQ(reopen(job).tag, "b");
  // The stores have "c", which was never flushed.
  job.disk.restore(both);
  job.options.persistent.every = 0;
  reopen(job, latest, Newer::keep, {{"c", 3}});
  const Opened opened = reopen(job);
  EXPECT_EQ(opened.tag, "c");
  EXPECT_EQ(opened.info.source, RecoverySource::in_place);
  EXPECT_EQ(opened.level, Level::protected_);
  // Without them, "b" again, and the reason why not "c".
  lose_stores(job, {0, 1});
  EXPECT_EQ(reopen(job).tag, "b");
  EXPECT_TRUE(job.logged("skipped c"));
}

TEST_F(FlushTest, LatestNamesTheNewestDirectory) {
  PersistentJob job(2);
  commit_steps(job, {{"a", 1}, {"b", 2}});
  EXPECT_EQ(text_of(job, "/prefix/latest"), directories(job).front() + "\n");
  reopen(job, latest, Newer::keep, {{"c", 3}});
  EXPECT_EQ(text_of(job, "/prefix/latest"), directories(job).front() + "\n");
}

TEST_F(FlushTest, OpenDoesNotBelieveLatest) {
  PersistentJob job(2);
  commit_steps(job, {{"a", 1}, {"b", 2}});
  const std::string lie = directories(job).back() + "\n";
  job.disk.write_all("/prefix/latest", std::as_bytes(std::span(lie)));
  job.disk.remove_all("/nodes");
  EXPECT_EQ(reopen(job).tag, "b");
}

TEST_F(FlushTest, TheCatalogIsMadeAgainFromManifests) {
  PersistentJob job(3);
  commit_steps(job, {{"a", 1}, {"b", 2}});
  job.disk.remove_all("/nodes");
  job.disk.remove_all("/prefix/.kedge");  // with the run's record: whose they are say the manifests
  const Opened opened = reopen(job, latest, Newer::keep, {{"c", 3}});
  EXPECT_EQ(opened.tag, "b");
  job.disk.remove_all("/nodes");
  EXPECT_EQ(reopen(job).tag, "c");  // newer than what was there, although all numbers were forgotten
  std::vector<std::string> catalogued;
  const auto file_system = job.disk.view(0);
  for (const auto& entry : persist::TagCatalog(*file_system, "/prefix/.kedge/test").read()) {
    catalogued.push_back(entry.directory);
  }
  EXPECT_THAT(catalogued, testing::UnorderedElementsAreArray(directories(job)));
}

TEST_F(FlushTest, AnotherRunOfTheSamePrefixIsNotOpened) {
  PersistentJob job(2);
  job.options.run = "one";
  commit_steps(job, {{"a", 1}});
  job.options.run = "two";
  EXPECT_EQ(reopen(job).tag, std::nullopt);
  reopen(job, latest, Newer::keep, {{"b", 2}});
  job.disk.remove_all("/nodes");
  EXPECT_EQ(reopen(job).tag, "b");
  job.options.run = "one";
  EXPECT_EQ(reopen(job).tag, "a");
}

TEST_F(FlushTest, SelectionsReachThePrefix) {
  PersistentJob job(2);
  commit_steps(job, {{"a", 1}, {"b", 2}, {"a", 3}, {"c", 4}});
  job.disk.remove_all("/nodes");
  const auto before = job.disk.snapshot();
  EXPECT_EQ(reopen(job, Tag("a")).step, 3);
  job.disk.restore(before);
  EXPECT_EQ(reopen(job, Before{"b"}).step, 1);
  job.disk.restore(before);
  EXPECT_EQ(reopen(job, Before{"a"}).tag, std::nullopt);
  job.disk.restore(before);
  EXPECT_EQ(reopen(job, Tag("none")).tag, std::nullopt);
  job.disk.restore(before);
  EXPECT_EQ(reopen(job, Tag("b"), Newer::discard).step, 2);
  job.disk.remove_all("/nodes");
  EXPECT_EQ(reopen(job).step, 2) << "newer ones were discarded";
}

TEST_F(FlushTest, KeepsAsManyAsAskedAndWhatIsPinned) {
  PersistentJob job(2);
  job.options.persistent.keep = 2;
  commit_steps(job, {{"a", 1}, {"b", 2}});
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    engine.pin("a");
    for (const int step : {3, 4, 5}) commit_step(engine, scope.rank, compose("s{}", step), step);
  }));
  EXPECT_EQ(tags(job), (std::vector<Tag>{"s5", "s4", "a"}));
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    engine.unpin("a");
    commit_step(engine, scope.rank, "s6", 6);
  }));
  EXPECT_EQ(tags(job), (std::vector<Tag>{"s6", "s5"}));
}

TEST_F(FlushTest, WhatIsOpenStaysBesideNewerOnes) {
  PersistentJob job(2);
  job.options.persistent.every = 0;
  job.options.persistent.keep = 1;
  job.options.store.keep = 2;
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    commit_step(engine, scope.rank, "a", 1);
    engine.wait("a", Level::persistent);
    commit_step(engine, scope.rank, "b", 2);
  }));
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    EXPECT_EQ(engine.open(Tag("a")), "a");
    engine.wait("b", Level::persistent);
    engine.close();
  }));
  EXPECT_EQ(tags(job), (std::vector<Tag>{"b", "a"}));
}

TEST_F(FlushTest, PinOfWhatIsNotPersistentFailsOnAllRanks) {
  PersistentJob job(2);
  job.options.persistent.every = 0;
  const auto outcomes = job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    commit_step(engine, scope.rank, "a", 1);
    engine.pin("a");
  });
  EXPECT_TRUE(says(expect_all_failed(outcomes, ErrorCode::not_found).message, {"'a'", "persistent"}));
}

TEST_F(FlushTest, StoresAreRemovedOnExitOnlyIfTheNewestIsPersistent) {
  PersistentJob job(2);
  job.options.store.on_exit = OnExit::remove_if_persistent;
  const auto run = [&](bool flushed) {
    job.options.persistent.every = flushed ? 1 : 0;
    expect_all_returned(job.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      (void)engine.open();
      if (engine.level("a") != Level::none || engine.level("b") != Level::none) engine.close();
      commit_step(engine, scope.rank, flushed ? "b" : "a", flushed ? 2 : 1);
      engine.finalize();
    }));
  };
  run(false);
  EXPECT_FALSE(container_files(job.disk, 0).empty());
  run(true);
  EXPECT_TRUE(container_files(job.disk, 0).empty());
  EXPECT_EQ(reopen(job).tag, "b");
}

/// Of the newest commit, which was found damaged, the stores may hold what somebody can still mend.
TEST_F(FlushTest, StoresAreNotRemovedOnExitAfterALoss) {
  PersistentJob job(2);
  job.options.store.keep = 2;
  job.options.open.verify = Verify::headers;
  commit_steps(job, {{"a", 1}});
  job.options.persistent.every = 0;
  commit_steps(job, {{"b", 2}});
  job.options.store.on_exit = OnExit::remove_if_persistent;
  const std::string path = faults::container_of(job.disk, 1, "b");
  job.disk.flip_bit(path, job.disk.read_all(path).size() / 2);
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    find_damaged(engine, scope.rank, latest, "b");
    EXPECT_EQ(engine.level("a"), Level::persistent);
    engine.finalize();
  }));
  EXPECT_FALSE(container_files(job.disk, 0).empty());
}

TEST_F(FlushTest, AnUnchangedStructureCostsNoHdf5Call) {
  PersistentJob job(3);
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    commit_step(engine, scope.rank, "a", 1);
    (void)engine.need_checkpoint();  // all are through
    const std::uint64_t entries = format::hdf5_call_count();
    (void)engine.need_checkpoint();
    commit_step(engine, scope.rank, "b", 2);
    (void)engine.need_checkpoint();
    EXPECT_EQ(format::hdf5_call_count(), entries);
    EXPECT_EQ(engine.level("b"), Level::persistent);
  }));
}

/// Commits three times, with what `create` and `save` make of 0, 1 and 2; how often rank 0 went into HDF5 for the third
/// manifest.
template <class Make>
std::uint64_t hdf5_calls_of_the_third(std::uint64_t view_shards_max, const Make& make) {
  PersistentJob job(2);
  job.view_shards_max = view_shards_max;
  std::uint64_t calls = 0;
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    for (int i = 0; i < 3; ++i) {
      (void)engine.need_checkpoint();  // all are through
      const std::uint64_t before = format::hdf5_call_count();
      (void)engine.need_checkpoint();
      make(engine, i);
      engine.commit();
      (void)engine.need_checkpoint();
      if (scope.rank == 0) calls = format::hdf5_call_count() - before;
      EXPECT_EQ(engine.level(compose("t{}", i)), Level::persistent);
    }
  }));
  return calls;
}

TEST_F(FlushTest, AttributesCostHdf5CallsOnlyWhereTheirFormChanges) {
  const auto calls = [](const std::function<Attributes(int)>& attributes) {
    return hdf5_calls_of_the_third(persist::kViewShardsMax,
                                   [&](Engine& engine, int i) { engine.create(compose("t{}", i), attributes(i)); });
  };
  EXPECT_EQ(
      calls([](int i) -> Attributes {
        return {{"step", std::int64_t{i}}, {"time", 0.5 * i}, {"code", std::string(static_cast<std::size_t>(i), 'x')}};
      }),
      0U);
  EXPECT_GT(calls([](int i) -> Attributes { return {{compose("step{}", i), 1.5}}; }), 0U);
}

TEST_F(FlushTest, RegionsOfARanksOwnAreShownAnewWhenTheyChangeUnlessTheyAreTooMany) {
  const auto calls = [](std::uint64_t limit) {
    return hdf5_calls_of_the_third(limit, [](Engine& engine, int i) {
      engine.create(compose("t{}", i));
      const std::vector<double> own(static_cast<std::size_t>(i / 2 + 1));  // another size in the third
      (void)engine.save("own", {own.data(), DataType::float64, Shape{own.size()}});
    });
  };
  const std::uint64_t container = calls(1);  // two regions are too many: only the container's structure is made anew
  EXPECT_GT(calls(2), container) << "and the manifest's";
}

TEST_F(FlushTest, ACopyOfTheManifestIsKeptInTwoFailureDomains) {
  PersistentJob job(4);
  job.ranks_per_node = 2;
  commit_steps(job, {{"a", 1}});
  std::vector<std::string> nodes;
  for (const auto& [path, entry] : job.disk.snapshot()) {
    if (path.find("/master-") == std::string::npos) continue;
    nodes.push_back(path.substr(0, path.find('/', std::string("/nodes/").size())));
    const auto manifest = job.disk.read_all("/prefix/" + directories(job).front() + "/checkpoint.h5");
    EXPECT_EQ(entry.bytes, manifest);
  }
  EXPECT_EQ(nodes, (std::vector<std::string>{"/nodes/node0", "/nodes/node1"}));
}

}  // namespace
}  // namespace kedge::faults::flush_test
