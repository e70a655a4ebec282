// Unusual checkpoints through the prefix and back: no regions, no shards, structures that change, one rank, attributes
// of every kind and size; two runs on one prefix; repeated tags; manifests that lie.
#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "base/attempt.hpp"
#include "base/text.hpp"
#include "checksum/crc32c.hpp"
#include "format/manifest_rows.hpp"
#include "format/on_disk.hpp"
#include "harness/flush_fixture.hpp"
#include "harness/several_starts.hpp"

namespace kedge::faults::prefix_limits_test {
namespace {

class PrefixLimits : public FlushFixture {};

using Save = std::function<void(Engine&, int rank, int commit)>;

/// `count` commits by `save`; each must be persistent, and come back with these attributes after all stores are lost.
void round_trip(SimulatedJob& job, int count, const Save& save, const std::function<Attributes(int)>& attributes,
                const std::function<void(Engine&, int rank, int commit)>& check) {
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    for (int i = 0; i < count; ++i) {
      engine.create(compose("c{}", i), attributes(i));
      save(engine, scope.rank, i);
      engine.commit();
      EXPECT_EQ(engine.level(compose("c{}", i)), Level::persistent) << "commit " << i;
    }
  }));
  for (int i = 0; i < count; ++i) {
    job.disk.remove_all("/nodes");
    expect_all_returned(job.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      ASSERT_TRUE(engine.open(compose("c{}", i)));
      EXPECT_EQ(engine.info().attributes, attributes(i)) << "commit " << i;
      check(engine, scope.rank, i);
      engine.close();
    }));
  }
}
Attributes none(int) { return {}; }
void nothing(Engine&, int, int) {}

TEST_F(PrefixLimits, NoRegionsAnywhereOrOnSomeRanks) {
  for (const int ranks : {1, 3}) {
    for (const std::uint64_t limit : {std::uint64_t{0}, std::uint64_t{100}}) {
      PersistentJob job(ranks);
      job.view_shards_max = limit;
      round_trip(job, 2, nothing, none, nothing);
      PersistentJob some(ranks);
      some.view_shards_max = limit;
      round_trip(
          some, 3,
          [](Engine& engine, int rank, int i) {
            const std::int64_t value = rank;
            if (rank == i) engine.save("value", region(&value, {}));
          },
          none, [](Engine& engine, int rank, int i) { EXPECT_EQ(engine.regions().size(), rank == i ? 1U : 0U); });
    }
  }
}

TEST_F(PrefixLimits, ShardsOfNoSizeAndStructuresThatChange) {
  for (const std::uint64_t limit : {std::uint64_t{0}, std::uint64_t{3}, std::uint64_t{100}}) {
    PersistentJob job(3);
    job.view_shards_max = limit;
    round_trip(
        job, 6,
        [](Engine& engine, int rank, int i) {
          const auto n = static_cast<std::uint64_t>(i);
          const auto r = static_cast<std::uint64_t>(rank);
          const std::vector<double> values(n * 7, rank + 10.0 * i);
          // Rank 1 has nothing; the whole is empty at first; names and shapes change.
          const std::uint64_t mine = rank == 1 ? 0 : n;
          engine.save(i % 2 == 0 ? "g/t" : "g/u", Region{values.data(), DataType::float64, Shape{mine, 3}},
                      Shard{{2 * n, 3}, {rank == 0 ? 0 : n, 0}});
          const std::vector<double> same(n, i);
          engine.save("all/of/it", Region{same.data(), DataType::float64, Shape{n}}, Replicated{});
          if (r == n % 3) engine.save("own", Region{values.data(), DataType::float64, Shape{n, 1, 2}});
        },
        none,
        [](Engine& engine, int rank, int i) {
          if (rank == 1) return;
          std::vector<double> values(static_cast<std::size_t>(i) * 3);
          EXPECT_TRUE(engine.load(i % 2 == 0 ? "g/t" : "g/u", MutableRegion{values.data(), DataType::float64,
                                                                            Shape{static_cast<std::uint64_t>(i), 3}}));
          for (const double value : values) EXPECT_EQ(value, rank + 10.0 * i);
        });
  }
}

TEST_F(PrefixLimits, OffsetsThatAloneChangeAreCheckedAgain) {
  PersistentJob job(2);
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    const std::vector<double> values(4);
    for (const bool wrong : {false, true, true, false}) {
      engine.create("x");
      engine.save("t", region(std::span(values)),
                  Shard{{8}, {wrong ? std::uint64_t{0} : 4 * static_cast<std::uint64_t>(scope.rank)}});
      const auto failure = attempt([&] { engine.commit(); });
      EXPECT_EQ(failure.has_value(), wrong);
    }
  }));
}

TEST_F(PrefixLimits, OffsetsBeyondAllNumbers) {
  PersistentJob job(2);
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    const std::vector<double> values(4);
    for (const Shard& shard : {Shard{{8}, {kMost - 1}}, Shard{{kMost}, {kMost - 2}},
                               Shard{{kMost, kMost}, {0, 0}, true}, Shard{{8}, {0, 0}}, Shard{{0}, {0}}}) {
      engine.create("x");
      engine.save("t", region(std::span(values)), shard);
      const auto failure = attempt([&] { engine.commit(); });
      if (scope.rank == 0) std::cout << (failure ? to_string(*failure) : "committed") << '\n';
      EXPECT_TRUE(failure);
    }
    commit_step(engine, scope.rank, "fine", 1);
    EXPECT_EQ(engine.level("fine"), Level::persistent);
  }));
}

TEST_F(PrefixLimits, AttributesOfEveryKindAndSize) {
  const auto of = [](int i) -> Attributes {
    switch (i) {
      case 0: return {};
      case 1: return {{"t", 1e300}, {"n", std::numeric_limits<std::int64_t>::min()}, {"s", std::string()}};
      case 2: return {{"\u00fcber \u2713\n\"", std::string("\u2603 \x01 \\ \"")}, {"x", std::vector<double>{0.5}}};
      case 3: return {{"big", std::string(65000, 'x')}};
      case 4: return {{"d", 3.0}, {"v", std::vector<double>{1, 2, 3}}, {"i", std::vector<std::int64_t>{}}};
      case 5: return {{"big", std::string(65536 - 10, 'y')}};
      default: return {{"-0", -0.0}, {"tiny", 5e-324}, {"max", std::numeric_limits<std::int64_t>::max()}};
    }
  };
  for (int i = 1; i < 7; ++i) {
    PersistentJob job(2);
    round_trip(
        job, 1, nothing, [&](int) { return of(i); }, nothing);
    if (HasFailure()) ADD_FAILURE() << "attributes " << i;
  }
  PersistentJob job(2);
  round_trip(job, 7, nothing, of, nothing);
}

TEST_F(PrefixLimits, NotANumberIsRefusedOnAllRanks) {
  PersistentJob job(2);
  const auto outcomes = job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    engine.create("x", {{"nan", std::numeric_limits<double>::quiet_NaN()}});
  });
  (void)expect_all_failed(outcomes, ErrorCode::invalid_argument);
}

TEST_F(PrefixLimits, TwoRunsTakeTurnsOnOnePrefix) {
  PersistentJob job(2);
  job.options.persistent.keep = 1;
  for (int i = 1; i <= 4; ++i) {
    for (const std::string run : {"one", "two"}) {
      job.options.run = run;
      if (i % 2 == 0) job.disk.remove_all("/nodes");
      const Opened opened = reopen(job, latest, Newer::keep, {{"same", i * 10 + (run == "two" ? 1 : 0)}});
      EXPECT_EQ(opened.step, i == 1 ? -1 : (i - 1) * 10 + (run == "two" ? 1 : 0)) << run << i;
    }
  }
  EXPECT_EQ(tags(job).size(), 2U);
}

TEST_F(PrefixLimits, RepeatedTagsAcrossStoreAndPrefix) {
  PersistentJob job(2);
  job.options.store.keep = 2;
  commit_steps(job, {{"a", 1}, {"b", 2}, {"a", 3}});
  job.options.persistent.every = 0;
  reopen(job, latest, Newer::keep, {{"a", 4}, {"b", 5}});
  const auto all = job.disk.snapshot();
  EXPECT_EQ(reopen(job, Tag("a")).step, 4);
  job.disk.restore(all);
  EXPECT_EQ(reopen(job, Before{"b"}).step, 1);
  job.disk.restore(all);
  lose_stores(job, {0, 1});
  EXPECT_EQ(reopen(job, Tag("a")).step, 3);
  EXPECT_EQ(reopen(job, Tag("b")).step, 2);
  job.disk.restore(all);
  EXPECT_EQ(reopen(job, Tag("a"), Newer::discard).step, 4);
  lose_stores(job, {0, 1});
  EXPECT_EQ(reopen(job).step, 3);
  EXPECT_EQ(reopen(job, Tag("b"), Newer::discard).step, 2);
  lose_stores(job, {0, 1});
  EXPECT_EQ(reopen(job).step, 2);
  EXPECT_EQ(reopen(job, Tag("a")).step, 1);
}

/// Manifests with a right checksum that lie about their sizes; memory stays in proportion, and all ranks agree.
TEST_F(PrefixLimits, HostileManifestsAreRefused) {
  PersistentJob job(2);
  job.options.run = "first";
  commit_steps(job, {{"a", 1}, {"b", 2}});
  const std::string path = manifest_of(job, "b");
  const auto before = job.disk.snapshot();
  const auto good = before.at(path).bytes;
  std::vector<std::pair<std::string, std::function<void(std::vector<std::byte>&)>>> lies;
  const auto set = [](std::size_t at, auto value) {
    return [at, value](std::vector<std::byte>& bytes) { std::memcpy(bytes.data() + at, &value, sizeof value); };
  };
  for (const std::uint32_t world : {0U, 1U, 3U, 0xffffffffU})
    lies.emplace_back(compose("world {}", world), set(format::manifest_at::kWorldSize, world));
  for (const std::uint64_t big :
       {std::uint64_t{0}, std::uint64_t{1} << 40U, std::numeric_limits<std::uint64_t>::max()}) {
    lies.emplace_back(compose("file size {}", big), set(format::manifest_at::kFileSize, big));
    lies.emplace_back(compose("table at {}", big), set(format::manifest_at::kShardsOffset, big));
    lies.emplace_back(compose("attributes at {}", big), set(format::manifest_at::kAttributesOffset, big));
    lies.emplace_back(compose("attributes of {}", big), set(format::manifest_at::kAttributesSize, big));
    lies.emplace_back(compose("generation {}", big), set(format::manifest_at::kGeneration, big));
    lies.emplace_back(compose("total {}", big), set(format::manifest_at::kTotalBytes, big));
  }
  for (const bool claims : {true, false}) {
    for (const auto& [what, lie] : lies) {
      for (const std::string run : {"first", "second"}) {
        job.disk.restore(before);
        job.disk.remove_all("/nodes");
        if (!claims) job.disk.remove_all("/prefix/.kedge/first/tags.jsonl");
        auto bytes = good;
        lie(bytes);
        const std::uint32_t crc = crc32c(std::span(bytes).first(format::manifest_at::kCrc));
        std::memcpy(bytes.data() + format::manifest_at::kCrc, &crc, sizeof crc);
        job.disk.write_all(path, bytes);
        job.options.run = run;
        const Opened opened = run == "first" ? reopen(job) : reopen(job, Source{"/prefix", "first", "latest"});
        const bool harmless = what.starts_with("total") || what.ends_with("s at 0") || what.ends_with("s of 0");
        EXPECT_TRUE(opened.tag == "a" || (harmless && opened.tag == "b"))
            << what << ", " << run << ": " << opened.tag.value_or("nothing")
            << (opened.failure ? to_string(*opened.failure) : "");
      }
    }
  }
}

}  // namespace
}  // namespace kedge::faults::prefix_limits_test
