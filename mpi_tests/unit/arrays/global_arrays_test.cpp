// What ranks save together: what they must agree on, holes and overlaps, what the view shows, and when a structure is
// another.
#include "arrays/global_arrays.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "arrays/structure_hash.hpp"
#include "base/text.hpp"
#include "harness/forwarding_communicator.hpp"
#include "harness/testing_world.hpp"

namespace kedge::arrays::global_arrays_test {
namespace {

using testing::HasSubstr;

constexpr int kRanks = 3;
constexpr std::uint64_t kNoLimit = 1000;

SharedRegion replica(std::string name, DataType dtype = DataType::float64, Shape shape = Shape{5}) {
  return {std::move(name), dtype, shape, std::nullopt};
}
/// A row of a square that all ranks save.
SharedRegion row(std::string name, int rank, DataType dtype = DataType::float64) {
  Shard shard;
  shard.global_shape = Shape{kRanks, 4};
  shard.offset = Shape{static_cast<std::uint64_t>(rank), 0};
  return {std::move(name), dtype, Shape{1, 4}, shard};
}

using Save = std::function<std::vector<SharedRegion>(int rank)>;

/// The first thing that is wrong on any rank; empty if all is well.
std::string wrong(const Save& save) {
  std::string message;
  testing::InProcessWorld world(kRanks);
  const auto outcomes = world.run_connected([&](Communicator& communicator) {
    const comm::Group group(communicator, std::chrono::seconds(60));
    const auto arrays = GlobalArrays::exchange(group, save(group.rank()));
    const auto failure = group.vote(arrays.check());
    if (!group.is_root() || !failure) return;
    EXPECT_EQ(failure->code, ErrorCode::mismatch);
    message = failure->message;
  });
  for (const auto& outcome : outcomes) EXPECT_TRUE(outcome.returned());
  return message;
}

TEST(GlobalArrays, WhatFitsTogetherIsWell) {
  EXPECT_EQ(wrong([](int rank) {
              return std::vector{row("grid/t", rank), replica("grid/constants"), replica("parameters")};
            }),
            "");
}

TEST(GlobalArrays, RanksMustAgreeAboutEveryPropertyOfAName) {
  const auto with_rank_2 = [](const std::function<void(SharedRegion&)>& change, bool shard) {
    return wrong([&](int rank) {
      SharedRegion region = shard ? row("t", rank) : replica("t");
      if (rank == 2) change(region);
      return std::vector{region};
    });
  };
  for (const bool shard : {true, false}) {
    EXPECT_THAT(with_rank_2([](SharedRegion& region) { region.dtype = DataType::int64; }, shard),
                HasSubstr("ranks 0 and 2 disagree about region 't'"));
  }
  EXPECT_THAT(with_rank_2([](SharedRegion& region) { region.shape = Shape{6}; }, false), HasSubstr("disagree"));
  EXPECT_THAT(with_rank_2([](SharedRegion& region) { region.shard.reset(); }, true), HasSubstr("disagree"));
  EXPECT_THAT(with_rank_2(
                  [](SharedRegion& region) {
                    region.shard->global_shape = Shape{4, 4};
                  },
                  true),
              HasSubstr("disagree"));
  EXPECT_THAT(with_rank_2([](SharedRegion& region) { region.shard->holes_allowed = true; }, true),
              HasSubstr("with holes allowed"));
}

TEST(GlobalArrays, ANameThatIsARegionHereAndAGroupThereIsRefused) {
  for (const char* name : {"a", "a/b"}) {
    EXPECT_THAT(wrong([&](int rank) { return std::vector{replica(rank == 1 ? name : "a/b/c")}; }),
                HasSubstr(compose("region '{}' of rank 1 is also a group", name)));
  }
  EXPECT_EQ(wrong([](int rank) { return std::vector{replica(rank == 1 ? "ab" : "a/b")}; }), "");
}

TEST(GlobalArrays, ArraysOfEveryDataTypeAreShared) {
  for (int number = 1; number <= static_cast<int>(kLastDataType); ++number) {
    const auto dtype = static_cast<DataType>(number);
    EXPECT_EQ(wrong([&](int rank) {
                return std::vector{row("t", rank, dtype), replica("r", dtype)};
              }),
              "")
        << to_string(dtype);
  }
}

TEST(GlobalArrays, TheViewHasEachArrayWithItsBlocksAndEachReplicaOnce) {
  testing::InProcessWorld world(kRanks);
  const auto outcomes = world.run_connected([](Communicator& communicator) {
    const comm::Group group(communicator, std::chrono::seconds(60));
    const std::vector regions = {row("t", group.rank()), replica("parameters"), replica("constants")};
    const auto arrays = GlobalArrays::exchange(group, regions);
    EXPECT_TRUE(arrays.gather(group, 9, {})) << "as many as there are";
    EXPECT_FALSE(arrays.gather(group, 8, {}));
    const auto view = arrays.gather(group, kNoLimit, {});
    ASSERT_TRUE(view);
    EXPECT_EQ(view->arrays.size(), group.is_root() ? 1U : 0U);
    EXPECT_EQ(view->replicas.size(), group.is_root() ? 2U : 0U);
    if (!group.is_root()) return;
    EXPECT_EQ(view->arrays[0].name, "t");
    EXPECT_EQ(view->arrays[0].blocks.size(), std::size_t{kRanks});
    EXPECT_EQ(view->replicas[0].name, "constants");
    EXPECT_EQ(view->replicas[1].name, "parameters");
  });
  for (const auto& outcome : outcomes) EXPECT_TRUE(outcome.returned());
}

format::StoredRegion placed(std::string name, const Placement& placement = {}, Shape shape = Shape{2}) {
  format::StoredRegion region;
  region.spec = {std::move(name), DataType::opaque, shape, placement, false};
  return region;
}

TEST(GlobalArrays, TheViewListsWhatEveryRankSavedUnlessThatIsTooMuch) {
  testing::InProcessWorld world(kRanks);
  const auto outcomes = world.run_connected([](Communicator& communicator) {
    const comm::Group group(communicator, std::chrono::seconds(60));
    const auto rank = static_cast<std::uint64_t>(group.rank());
    std::vector regions = {placed("own/state", {}, Shape{rank}), placed("parameters", Replicated{})};
    if (group.is_root()) regions.push_back(placed(".kedge/attributes"));  // Kedge's own: counted, but not shown
    const auto arrays = GlobalArrays::exchange(group, shared_regions(regions));
    for (const std::uint64_t limit : {std::uint64_t{6}, std::uint64_t{7}}) {
      const auto view = arrays.gather(group, limit, regions);
      ASSERT_TRUE(view);
      EXPECT_EQ(view->replicas.size(), group.is_root() ? 1U : 0U);
      ASSERT_EQ(view->rank_regions.has_value(), limit == 7) << "2 of each rank, and one more";
      if (!view->rank_regions || !group.is_root()) continue;
      EXPECT_EQ(view->replicas[0].shape, Shape{2});
      ASSERT_EQ(view->rank_regions->size(), 2U * kRanks);
      for (const format::ManifestView::RankRegion& region : *view->rank_regions) {
        EXPECT_EQ(region.is_shared, region.name == "parameters");
        if (region.is_shared) continue;  // a link needs no more
        EXPECT_EQ(region.name, "own/state");
        EXPECT_EQ(region.shape, Shape{region.rank});
        EXPECT_EQ(region.dtype, DataType::opaque);
      }
    }
    std::vector<format::StoredRegion> many;
    for (std::uint64_t i = 0; i <= kListedRegionsMax / kRanks; ++i) many.push_back(placed(compose("r{}", i)));
    const auto none = arrays.gather(group, 100 * kListedRegionsMax, many);
    ASSERT_TRUE(none);
    EXPECT_FALSE(none->rank_regions) << "whatever persistent.view_limit is";
    many.pop_back();
    EXPECT_TRUE(arrays.gather(group, 100 * kListedRegionsMax, many)->rank_regions);
  });
  for (const auto& outcome : outcomes) EXPECT_TRUE(outcome.returned());
}

/// What a rank has of its own under a name that is shared on another would never come back as either.
TEST(GlobalArrays, ARanksOwnRegionHasNoNameThatOthersShare) {
  for (const Placement& placement : {Placement(Replicated{}), Placement(Shard{Shape{2}, Shape{0}})}) {
    for (const int odd : {0, 1, 2}) {
      std::string message;
      testing::InProcessWorld world(kRanks);
      const auto outcomes = world.run_connected([&](Communicator& communicator) {
        const comm::Group group(communicator, std::chrono::seconds(60));
        const bool shares = group.rank() == odd;
        const std::vector regions = {placed("other"), placed("x", shares ? placement : Placement())};
        const auto names = compare_containers(group, group.rank() == 1, shared_names(regions), 0).names;
        ASSERT_TRUE(names);
        const auto arrays = GlobalArrays::exchange(group, shared_regions(regions), own_regions_among(*names, regions));
        const auto failure = group.vote(arrays.check());
        if (group.is_root() && failure) message = failure->message;
      });
      for (const auto& outcome : outcomes) EXPECT_TRUE(outcome.returned());
      EXPECT_THAT(message, HasSubstr(compose("ranks {} and {} disagree about region 'x'", odd, odd == 0 ? 1 : 0)));
      EXPECT_THAT(message, HasSubstr("a region of that rank alone, opaque of shape 2"));
    }
  }
}

TEST(GlobalArrays, RegionsOfARanksOwnAreToldToOthersOnlyWhereTheirNamesMayBeShared) {
  std::vector<format::StoredRegion> regions = {placed("t", Replicated{})};
  const NameBits names = shared_names(regions);
  for (int i = 0; i < 1000; ++i) regions.push_back(placed(compose("own-{}", i)));
  EXPECT_LT(own_regions_among(names, regions).size(), 10U);
  EXPECT_TRUE(own_regions_among(shared_names(std::vector{placed("own-7")}), regions).empty());
  const auto told = own_regions_among(shared_names(std::vector{placed("own-7", Replicated{})}), regions);
  EXPECT_TRUE(std::ranges::any_of(told, [](const SharedRegion& region) { return region.name == "own-7"; }));
  testing::InProcessWorld world(kRanks);
  const auto outcomes = world.run_connected([&](Communicator& communicator) {
    const comm::Group group(communicator, std::chrono::seconds(60));
    EXPECT_FALSE(compare_containers(group, false, names, 0).names);
  });
  for (const auto& outcome : outcomes) EXPECT_TRUE(outcome.returned());
}

/// What arrives has lost its last byte.
class CutShort final : public testing::ForwardingCommunicator {
 public:
  using ForwardingCommunicator::ForwardingCommunicator;
  std::vector<Message> sparse_exchange(std::vector<Message> messages, Deadline deadline) override {
    auto arrived = ForwardingCommunicator::sparse_exchange(std::move(messages), deadline);
    for (Message& message : arrived) message.bytes.pop_back();
    return arrived;
  }
};

TEST(GlobalArrays, WhatCannotBeReadFromAnotherRankIsAFailureAndNotLeftOut) {
  testing::InProcessWorld world(kRanks);
  const auto outcomes = world.run_connected([](Communicator& communicator) {
    CutShort cut_short(communicator);
    const comm::Group group(cut_short, std::chrono::seconds(60));
    const auto failure = group.vote(GlobalArrays::exchange(group, std::vector{replica("t")}).check());
    ASSERT_TRUE(failure);
    EXPECT_EQ(failure->code, ErrorCode::io);
  });
  for (const auto& outcome : outcomes) EXPECT_TRUE(outcome.returned());
}

/// The manifest's view is made anew only if this changes: what it did not tell apart would be shown as it was before.
TEST(StructureHash, EveryPropertyOfASharedRegionCounts) {
  const auto hash = [](const std::vector<SharedRegion>& regions) {
    std::vector<format::StoredRegion> placed;
    for (const SharedRegion& region : regions) {
      Placement placement = Replicated{};
      if (region.shard) placement = *region.shard;
      placed.push_back({{region.name, region.dtype, region.shape, placement, false}, 0, 0, 0});
    }
    return structure_hash(placed, ViewedRegions::shared);
  };
  const std::vector<SharedRegion> before = {row("t", 1), replica("p")};
  const auto changed = [&](std::size_t which, const std::function<void(SharedRegion&)>& change) {
    std::vector<SharedRegion> after = before;
    change(after[which]);
    return hash(after) != hash(before);
  };
  EXPECT_EQ(hash(before), hash(before));
  for (const std::size_t which : {0U, 1U}) {
    EXPECT_TRUE(changed(which, [](SharedRegion& region) { region.name += "2"; }));
    EXPECT_TRUE(changed(which, [](SharedRegion& region) { region.dtype = DataType::int64; }));
    EXPECT_TRUE(changed(which, [](SharedRegion& region) { region.shape = Shape{1, 5}; }));
  }
  EXPECT_TRUE(changed(0, [](SharedRegion& region) { region.shard->global_shape = Shape{kRanks, 5}; }));
  EXPECT_TRUE(changed(0, [](SharedRegion& region) { region.shard->offset = Shape{2, 0}; }));
  EXPECT_TRUE(changed(0, [](SharedRegion& region) { region.shard->holes_allowed = true; }));
  EXPECT_TRUE(changed(0, [](SharedRegion& region) { region.shard.reset(); }));
  EXPECT_TRUE(changed(1, [](SharedRegion& region) { region.shard = Shard{Shape{5}, Shape{0}}; }));
  EXPECT_NE(hash({before[1], before[0]}), hash(before));
}

TEST(StructureHash, ARanksOwnRegionsCountOnlyWhereTheyAreShown) {
  const auto hash = [](std::string name, Shape shape, ViewedRegions viewed) {
    return structure_hash(
        std::vector<format::StoredRegion>{{{std::move(name), DataType::opaque, shape, {}, false}, 0, 0, 0}}, viewed);
  };
  EXPECT_EQ(hash("mine", Shape{5}, ViewedRegions::shared), hash("other", Shape{6}, ViewedRegions::shared));
  EXPECT_NE(hash("mine", Shape{5}, ViewedRegions::all), hash("mine", Shape{6}, ViewedRegions::all));
  EXPECT_NE(hash("mine", Shape{5}, ViewedRegions::all), hash("other", Shape{5}, ViewedRegions::all));
  EXPECT_EQ(hash(".kedge/attributes", Shape{5}, ViewedRegions::all),
            hash(".kedge/attributes", Shape{6}, ViewedRegions::all));
}

}  // namespace
}  // namespace kedge::arrays::global_arrays_test
