// Parity, set descriptors and what lies on the prefix, where it cannot be opened or read: it counts as lost, and what
// needs it does without, or steps back.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <tuple>
#include <vector>

#include "base/text.hpp"
#include "harness/flush_fixture.hpp"
#include "harness/obstacles.hpp"
#include "harness/set_files.hpp"
#include "harness/several_starts.hpp"

namespace kedge::faults::inaccessible_files_test {
namespace {

using format::SetFileKind;

DiskOptions disk_of(bool memory) { return memory ? SimulatedJob::memory_disk() : SimulatedJob::block_disk(); }

/// One rank on each of four nodes; "a" and "b" are committed.
struct ProtectedJob : SimulatedJob {
  ProtectedJob(bool memory, Scheme scheme) : SimulatedJob(4, disk_of(memory)) {
    ranks_per_node = 1;
    options.redundancy.scheme = scheme;
    commit_steps(*this, {{"a", 1}, {"b", 2}});
  }
};

class InaccessibleParity : public ::testing::TestWithParam<std::tuple<Obstacle, bool>> {
 protected:
  [[nodiscard]] static const Obstacle& obstacle() { return std::get<Obstacle>(GetParam()); }
  [[nodiscard]] static bool memory() { return std::get<bool>(GetParam()); }
};

TEST_P(InaccessibleParity, CostsNothingWhereAllContainersAreAndIsMadeAgain) {
  for (const SetFileKind kind : {SetFileKind::parity, SetFileKind::descriptor}) {
    SCOPED_TRACE(kind == SetFileKind::parity ? "parity" : "descriptors");
    ProtectedJob job(memory(), Scheme::xor_);
    const std::vector<std::string> paths{set_file_of(job.disk, kind, 0, "b"), set_file_of(job.disk, kind, 3, "b")};
    for (const std::string& path : paths) obstacle().put(job.disk, path);
    const auto before = job.disk.snapshot();
    const Opened opened = reopen(job, latest, Newer::keep, {{"c", 3}});
    EXPECT_EQ(opened.step, 2) << to_string(opened.failure.value_or(Failure{}));
    EXPECT_EQ(opened.info.source, RecoverySource::in_place);
    EXPECT_EQ(opened.level, Level::protected_);
    const auto after = job.disk.snapshot();
    for (const std::string& path : paths) {
      EXPECT_TRUE(!after.contains(path) || after.at(path).bytes == before.at(path).bytes) << path;
    }
    job.disk.remove_all(store_of(0));
    const Opened again = reopen(job);
    EXPECT_EQ(again.step, 3) << to_string(again.failure.value_or(Failure{}));
    EXPECT_EQ(again.info.source, RecoverySource::rebuilt);
  }
}

TEST_P(InaccessibleParity, CountsWhereAContainerIsLost) {
  struct Case {
    SetFileKind kind;
    Scheme scheme;
    bool rebuilt;
  };
  // A member without parity is one lost member more; what a descriptor says is in the others, too.
  for (const Case& one : {Case{SetFileKind::parity, Scheme::xor_, false}, Case{SetFileKind::parity, Scheme::rs, true},
                          Case{SetFileKind::descriptor, Scheme::xor_, true}}) {
    // Parity in memory is read where it is mapped, which fails on no machine that lives on.
    const bool mapped = memory() && one.kind == SetFileKind::parity;
    if (mapped && obstacle().from == Obstacle::From::past_header) continue;
    SCOPED_TRACE(compose("{}, {}", to_string(one.scheme), one.rebuilt ? "rebuilt" : "stepped back"));
    ProtectedJob job(memory(), one.scheme);
    obstacle().put(job.disk, container_of(job.disk, 0, "b"));
    obstacle().put(job.disk, set_file_of(job.disk, one.kind, 2, "b"));
    const Opened opened = reopen(job);
    EXPECT_EQ(opened.step, one.rebuilt ? 2 : 1) << to_string(opened.failure.value_or(Failure{}));
    EXPECT_EQ(opened.info.source, one.rebuilt ? RecoverySource::rebuilt : RecoverySource::in_place);
  }
}

INSTANTIATE_TEST_SUITE_P(Where, InaccessibleParity,
                         ::testing::Combine(::testing::ValuesIn(obstacles()), ::testing::Bool()), [](const auto& each) {
                           return std::get<Obstacle>(each.param).name +
                                  (std::get<bool>(each.param) ? "_in_memory" : "_on_disk");
                         });

class InaccessiblePrefix : public FlushFixture, public ::testing::WithParamInterface<Obstacle> {
 protected:
  /// "a" and "b" are on the prefix and in the stores.
  struct Job : PersistentJob {
    Job() : PersistentJob(3) {
      options.redundancy.scheme = Scheme::single;
      commit_steps(*this, {{"a", 1}, {"b", 2}});
    }
  };
  enum class What : std::uint8_t { manifest, container, two_containers, everything };
  [[nodiscard]] static std::vector<std::string> paths_of(SimulatedJob& job, What what) {
    const auto container = [&](std::uint32_t rank) { return container_of(job, "b", rank); };
    switch (what) {
      case What::manifest: return {manifest_of(job, "b")};
      case What::container: return {container(1)};
      case What::two_containers: return {container(0), container(2)};
      case What::everything: break;
    }
    return {container(0), container(1), container(2), manifest_of(job, "b")};
  }
  /// With the obstacle in the way of each of these.
  static void for_each(const std::function<void(SimulatedJob&, What, const std::string& path)>& check) {
    for (const What what : {What::manifest, What::container, What::two_containers, What::everything}) {
      // At the end of a manifest is what other readers see.
      if (what == What::manifest && GetParam().from == Obstacle::From::end) continue;
      Job job;
      const std::vector<std::string> paths = paths_of(job, what);
      SCOPED_TRACE(compose("{} file(s), {}", paths.size(), paths.front()));
      for (const std::string& path : paths) GetParam().put(job.disk, path);
      const bool needs_manifest = what == What::everything && GetParam().from != Obstacle::From::end;
      check(job, what, needs_manifest ? paths.back() : paths.front());
    }
  }
  /// A new commit reaches the prefix, and is opened from there.
  static void expect_goes_on(SimulatedJob& job) {
    lose_stores(job, {0, 1, 2});
    const Opened opened = reopen(job);
    EXPECT_EQ(opened.step, 3) << to_string(opened.failure.value_or(Failure{}));
    EXPECT_EQ(opened.info.source, RecoverySource::fetched);
  }
};

TEST_P(InaccessiblePrefix, CostsNothingWhereTheStoresHaveAll) {
  for_each([](SimulatedJob& job, What, const std::string&) {
    const Opened opened = reopen(job, latest, Newer::keep, {{"c", 3}});
    EXPECT_EQ(opened.step, 2) << to_string(opened.failure.value_or(Failure{}));
    EXPECT_EQ(opened.info.source, RecoverySource::in_place);
    expect_goes_on(job);
  });
}

TEST_P(InaccessiblePrefix, StepsBackWhereTheStoresAreLost) {
  for_each([](SimulatedJob& job, What, const std::string& path) {
    lose_stores(job, {0, 1, 2});
    const Opened opened = reopen(job, latest, Newer::keep, {{"c", 3}});
    EXPECT_EQ(opened.step, 1) << to_string(opened.failure.value_or(Failure{}));
    EXPECT_EQ(opened.info.source, RecoverySource::fetched);
    EXPECT_TRUE(job.logged(path)) << "the log names " << path;
    expect_goes_on(job);
  });
}

TEST_P(InaccessiblePrefix, CountsForTheRanksAloneThatNeedIt) {
  for_each([](SimulatedJob& job, What what, const std::string&) {
    lose_stores(job, {1});
    const Opened opened = reopen(job, latest, Newer::keep, {{"c", 3}});
    EXPECT_EQ(opened.step, what == What::two_containers ? 2 : 1) << to_string(opened.failure.value_or(Failure{}));
    EXPECT_EQ(opened.info.source, RecoverySource::fetched);
    expect_goes_on(job);
  });
}

TEST_P(InaccessiblePrefix, IsNeverASilentStartFromZero) {
  for_each([](SimulatedJob& job, What, const std::string& path) {
    lose_stores(job, {0, 1, 2});
    job.disk.remove_all(directory_of(job, "a"));
    const Opened opened = reopen(job);
    ASSERT_TRUE(opened.failure);
    EXPECT_EQ(opened.failure->code, ErrorCode::unrecoverable) << to_string(*opened.failure);
    EXPECT_TRUE(says(opened.failure->message, {path})) << opened.failure->message;
  });
}

INSTANTIATE_TEST_SUITE_P(Where, InaccessiblePrefix, ::testing::ValuesIn(obstacles().begin() + 1, obstacles().end()),
                         [](const auto& each) { return each.param.name; });

}  // namespace
}  // namespace kedge::faults::inaccessible_files_test
