// A new run begins with another run's tag, or with a copied directory, also beside a job that flushes and removes
// there; attributes come back on every rank, holes and overlaps of global arrays are refused by name.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "base/text.hpp"
#include "harness/flush_fixture.hpp"
#include "harness/forwarding_file_system.hpp"
#include "harness/several_starts.hpp"

namespace kedge::faults::source_test {
namespace {

class SourceTest : public FlushFixture {
 protected:
  SourceTest() : job(3) {
    job.options.run = "first";
    commit_steps(job, {{"a", 1}, {"b", 2}});
    job.options.run = "second";
  }
  /// The tag directory of a run lies elsewhere as well.
  std::string copied(const Tag& tag, const std::string& to) {
    const std::string from = directory_of(job, tag);
    for (const auto& [path, entry] : job.disk.snapshot()) {
      if (!path.starts_with(from)) continue;
      const std::string target = to + path.substr(from.size());
      if (entry.status.kind == fs::FileStatus::Kind::directory) job.disk.make_directories(target, 0755);
      else job.disk.write_all(target, entry.bytes);
    }
    return to;
  }
  PersistentJob job;
};

TEST_F(SourceTest, ANewRunBeginsWithAnotherRunsTag) {
  const auto before = job.disk.snapshot();
  const Opened opened = reopen(job, Source{"/prefix", "first", "a"}, Newer::keep, {{"c", 3}});
  EXPECT_FALSE(opened.failure);
  EXPECT_EQ(opened.step, 1);
  EXPECT_EQ(opened.info.source, RecoverySource::fetched);
  for (const auto& entry : list(job).entries) {
    if (entry.commit.tag != "c") continue;
    EXPECT_EQ(entry.commit.parent_id, opened.info.id);
  }
  // The source is as it was, and this run goes on by itself.
  for (const auto& [path, entry] : before) {
    if (!path.starts_with("/prefix/a.")) continue;
    EXPECT_EQ(job.disk.snapshot().at(path).bytes, entry.bytes) << path;
  }
  EXPECT_EQ(reopen(job).tag, "c");
}

TEST_F(SourceTest, LatestOfARunOrOfAll) {
  EXPECT_EQ(reopen(job, Source{"/prefix", "first", "latest"}).tag, "b");
  EXPECT_EQ(reopen(job, Source{"/prefix", "", "latest"}).tag, "b");
}

TEST_F(SourceTest, WhatIsNotThereIsNotFoundOnAllRanks) {
  for (const Source& source : {Source{"/prefix", "first", "c"}, Source{"/prefix", "other", "a"}}) {
    const Opened opened = reopen(job, source);
    ASSERT_TRUE(opened.failure);
    EXPECT_EQ(opened.failure->code, ErrorCode::not_found);
  }
  const Opened opened = reopen(job, Source{"/nowhere", "", "a"});
  ASSERT_TRUE(opened.failure);
  EXPECT_EQ(opened.failure->path, "/nowhere");
}

TEST_F(SourceTest, ACopiedDirectoryOpensWhereItIs) {
  const std::string name = directory_of(job, "b").substr(std::string("/prefix/").size());
  copied("b", "/archive/" + name);
  copied("b", "/renamed");
  job.disk.remove_all("/prefix/" + name);
  EXPECT_EQ(reopen(job, Source{"/archive", "", "b"}).step, 2);
  EXPECT_EQ(reopen(job, Source{"/archive", "first", "latest"}).step, 2);
  EXPECT_EQ(reopen(job, Source{"/renamed", "", "b"}).step, 2);
}

/// Calls `look` before each look at the prefix.
class WatchedPrefix final : public ForwardingFileSystem {
 public:
  WatchedPrefix(std::shared_ptr<fs::FileSystem> inner, std::function<void()> look)
      : ForwardingFileSystem(std::move(inner)), look_(std::move(look)) {}
  [[nodiscard]] std::unique_ptr<fs::File> open(const std::string& path, fs::Access access) override {
    if (path.starts_with("/archive")) look_();
    return inner().open(path, access);
  }
  [[nodiscard]] std::vector<std::string> list(const std::string& path) override {
    if (path.starts_with("/archive")) look_();
    return inner().list(path);
  }
  [[nodiscard]] std::optional<fs::FileStatus> status(const std::string& path) override {
    if (path.starts_with("/archive")) look_();
    return inner().status(path);
  }

 private:
  std::function<void()> look_;
};

/// Beside a job that keeps one: whenever the newest comes and the one before goes, one of them is opened.
TEST_F(SourceTest, WhatIsRemovedWhileItIsLookedForIsListedAgain) {
  const std::string older = directory_of(job, "a").substr(std::string("/prefix/").size());
  const std::string newer = directory_of(job, "b").substr(std::string("/prefix/").size());
  std::atomic<std::int64_t> left = 0;  // looks before it happens
  job.surroundings = [&](int, start::Environment& environment) {
    environment.file_system = std::make_shared<WatchedPrefix>(environment.file_system, [&] {
      if (--left != 0) return;
      (void)copied("b", "/archive/" + newer);
      job.disk.remove_all("/archive/" + older);
    });
  };
  bool has_happened = true;
  for (std::int64_t n = 1; has_happened; ++n) {
    SCOPED_TRACE(n);
    ASSERT_LT(n, 300);
    job.disk.remove_all("/archive");
    job.disk.make_directories("/archive", 0755);
    (void)copied("a", "/archive/" + older);
    left = n;
    const Opened opened = reopen(job, Source{"/archive", "first", "latest"});
    has_happened = left <= 0;
    left = 0;
    EXPECT_FALSE(opened.failure) << to_string(*opened.failure);
    EXPECT_TRUE(opened.step == 1 || opened.step == 2) << opened.step;
    ASSERT_FALSE(HasFailure());
  }
}

/// Where nothing was flushed, open does not list again and again; a flush that was cut short is no checkpoint.
TEST_F(SourceTest, WhereNothingWasFlushedItIsNotFound) {
  const std::string name = directory_of(job, "b").substr(std::string("/prefix/").size());
  (void)copied("b", "/archive/" + name);
  job.disk.remove_all("/archive/" + name + "/checkpoint.h5");
  const Opened opened = reopen(job, Source{"/archive", "", "latest"});
  EXPECT_TRUE(opened.failure && opened.failure->code == ErrorCode::not_found);
}

TEST_F(SourceTest, ADamagedOneIsSkippedForAnOlderOne) {
  job.disk.flip_bit(container_of(job, "b", 2), 100);
  const Opened opened = reopen(job, Source{"/prefix", "first", "latest"});
  EXPECT_EQ(opened.tag, "a");
  EXPECT_TRUE(job.logged("skipped b"));
  const Opened named = reopen(job, Source{"/prefix", "first", "b"});
  ASSERT_TRUE(named.failure);
  EXPECT_EQ(named.failure->code, ErrorCode::unrecoverable);
}

TEST_F(SourceTest, ABlockThatIsDamagedIsFoundByLoad) {
  const std::string path = container_of(job, "b", 1);
  job.disk.flip_bit(path, job.disk.read_all(path).size() / 2);
  const auto outcomes = job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    EXPECT_TRUE(engine.open(Source{"/prefix", "first", "b"}));
    EXPECT_EQ(load_step(engine, scope.rank), scope.rank == 1 ? -1 : 2);
    engine.close();
  });
  (void)expect_all_failed(outcomes, ErrorCode::corrupt);
}

TEST_F(SourceTest, WhatLoadFoundDamagedIsNotOpenedAgainAndItsCopyElsewhereIs) {
  const std::string name = directory_of(job, "b").substr(std::string("/prefix/").size());
  job.disk.make_directories("/copy", 0755);
  (void)copied("b", "/copy/" + name);
  const std::string path = container_of(job, "b", 1);
  job.disk.flip_bit(path, job.disk.read_all(path).size() / 2);
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    find_damaged(engine, scope.rank, Source{"/prefix", "first", "latest"}, "b");
    EXPECT_EQ(engine.open(Source{"/prefix", "first", "latest"}), "a");
    engine.close();
    EXPECT_EQ(engine.open(Source{"/copy", "first", "latest"}), "b");
    EXPECT_EQ(load_step(engine, scope.rank), 2);
    engine.close();
  }));
}

TEST_F(SourceTest, WhatLoadFoundDamagedIsNoParent) {
  const std::string path = container_of(job, "b", 1);
  job.disk.flip_bit(path, job.disk.read_all(path).size() / 2);
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    find_damaged(engine, scope.rank, Source{"/prefix", "first", "b"}, "b");
    commit_step(engine, scope.rank, "c", 3);
  }));
  const Opened opened = reopen(job);
  EXPECT_EQ(opened.tag, "c");
  EXPECT_TRUE(opened.info.parent_id.is_none());
}

TEST_F(SourceTest, OthersFilesObeyTrust) {
  const std::string directory = directory_of(job, "a");
  for (const auto& [path, entry] : job.disk.snapshot()) {
    if (!path.starts_with(directory)) continue;
    fs::FileStatus status = entry.status;
    status.owner = 4711;
    job.disk.plant(path, status);
  }
  const Opened refused = reopen(job, Source{"/prefix", "first", "a"});
  ASSERT_TRUE(refused.failure);
  EXPECT_TRUE(says(to_string(*refused.failure), {"persistent.trust"})) << to_string(*refused.failure);
  job.options.persistent.trust = Trust::any;
  EXPECT_EQ(reopen(job, Source{"/prefix", "first", "a"}).step, 1);
}

TEST_F(SourceTest, LinksAreNotFollowed) {
  const std::string path = container_of(job, "a", 0);
  job.disk.remove_all(path);
  job.disk.plant_link(path, container_of(job, "b", 0));
  const Opened opened = reopen(job, Source{"/prefix", "first", "a"});
  ASSERT_TRUE(opened.failure);
  EXPECT_TRUE(says(opened.failure->message, {"link"})) << opened.failure->message;
}

TEST_F(SourceTest, AttributesComeFromStoreAndPrefixAlike) {
  const Attributes attributes = {{"time", 1.5}, {"code", std::string("v2")}, {"grid", std::vector<std::int64_t>{3, 4}}};
  const auto check = [&](const Selection& selection) {
    expect_all_returned(job.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      ASSERT_TRUE(engine.open(selection));
      EXPECT_EQ(engine.info().attributes, attributes);
      EXPECT_EQ(engine.regions().size(), 1U);
      engine.close();
    }));
  };
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    for (const Tag tag : {"plain", "told"}) {
      engine.create(tag, tag == "told" ? attributes : Attributes{});
      const std::int64_t value = scope.rank;
      engine.save("value", region(&value, {}));
      engine.commit();
    }
  }));
  check(latest);
  job.disk.remove_all("/nodes");
  check(latest);
  job.options.run = "third";
  check(Source{"/prefix", "second", "told"});
}

TEST_F(SourceTest, DamagedAttributesAreToldByCloseOnAllRanks) {
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    engine.create("told", {{"code", std::string("version-two")}});
    const std::int64_t value = scope.rank;
    engine.save("value", region(&value, {}));
    engine.commit();
  }));
  job.options.open.verify = Verify::headers;
  const std::string path = faults::container_of(job.disk, 0, "told");
  const auto bytes = job.disk.read_all(path);
  const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  job.disk.flip_bit(path, text.find("version-two"));
  const auto outcomes = job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    EXPECT_EQ(engine.open(), "told");
    EXPECT_TRUE(engine.info().attributes.empty());
    engine.close();
  });
  (void)expect_all_failed(outcomes, ErrorCode::corrupt);
}

TEST_F(SourceTest, AttributesThatCannotBeKeptAreRefusedOnAllRanks) {
  const auto outcomes = job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    engine.create("x", {{"", std::int64_t{1}}});
  });
  (void)expect_all_failed(outcomes, ErrorCode::invalid_argument);
}

/// Rank 1's block leaves a hole, or overlaps: commit throws on all ranks, naming it, and the next one may be right.
TEST_F(SourceTest, HolesAndOverlapsOfGlobalArraysAreRefusedByName) {
  Tag tag;
  const auto save = [&](Engine& engine, const RankScope& scope, std::uint64_t begin, std::uint64_t count, bool holes) {
    const std::vector<double> values(count);
    const Shard shard{{12}, {begin}, holes};
    engine.create(tag);
    engine.save("grid/t", region(std::span(values)),
                scope.rank == 1 ? shard : Shard{{12}, {4 * static_cast<std::uint64_t>(scope.rank)}, holes});
    engine.commit();
  };
  for (const bool hole : {true, false}) {
    tag = hole ? "hole" : "overlap";
    expect_all_returned(job.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      const std::uint64_t count = scope.rank != 1 ? 4 : hole ? 3 : 5;
      try {
        save(engine, scope, 4, count, false);
        ADD_FAILURE() << "rank " << scope.rank;
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::mismatch);
        EXPECT_TRUE(says(error.failure().message, {"grid/t", hole ? "(7)" : "(8)"})) << error.failure().message;
      }
      EXPECT_EQ(engine.level(tag), Level::none);
      if (hole) save(engine, scope, 4, count, true);
      else save(engine, scope, 4, 4, false);
      EXPECT_EQ(engine.level(tag), Level::persistent);
    }));
  }
}

TEST_F(SourceTest, RanksThatDisagreeAboutAnArrayAreNamed) {
  const auto outcomes = job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    engine.create("g");
    const std::vector<double> values(4);
    engine.save("t", region(std::span(values)),
                Shard{{scope.rank == 2 ? 13ULL : 12ULL}, {4 * static_cast<std::uint64_t>(scope.rank)}});
    engine.commit();
  });
  const Failure failure = expect_all_failed(outcomes, ErrorCode::mismatch);
  EXPECT_TRUE(says(failure.message, {"'t'", "ranks 0 and 2", "12", "13"})) << failure.message;
}

}  // namespace
}  // namespace kedge::faults::source_test
