// What homes find out: each wanted element in one match of all homes, and what is said of wants that cannot be served.
#include "arrays/directory.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "arrays/tiles.hpp"
#include "base/text.hpp"
#include "harness/saved_arrays.hpp"

namespace kedge::arrays::directory_test {
namespace {

using faults::RandomChoices;
using ::testing::HasSubstr;

/// The homes of one array, each with the tiles that it is in charge of.
struct Homes {
  Homes(const Shape& array, std::uint64_t ranks, std::uint64_t processes)
      : type{DataType::float64, {}, array},
        tiles(array, ranks, processes),
        directories(processes, {ranks, processes}) {}
  template <class Use>
  void at_homes(const Box& box, Use&& use) {
    const Tiles::Range range = tiles.of(box);
    for (std::uint64_t tile = range.first; tile <= range.last; ++tile) {
      const int home = home_of("u", tile, directories.size());
      use(directories[static_cast<std::size_t>(home)], HomedKey{LookUp::shard, tile, "u"});
    }
  }
  void add(std::uint32_t rank, const Box& box) {
    at_homes(box, [&](Directory& home, const HomedKey& key) { home.add(key, type, {0, rank, rank, false, box}); });
  }
  void ask(std::uint32_t want, const Box& box) {
    at_homes(box, [&](Directory& home, const HomedKey& key) { home.ask(key, type, {0, want, 0, box}); });
  }
  ArrayType type;
  Tiles tiles;
  std::vector<Directory> directories;
};

TEST(Directories, EachWantedElementIsInOneMatchOfAllHomes) {
  RandomChoices random(1);
  for (int round = 0; round < 120; ++round) {
    const std::size_t dimensions = 1 + random.below(8);
    Point extents{};
    for (std::size_t d = 0; d < dimensions; ++d) extents[d] = 1 + random.below(dimensions > 4 ? 3 : 12);
    const Shape array(std::span<const std::uint64_t>(extents).first(dimensions));
    const std::uint64_t ranks = random.one_of({3U, 130U, 700U});
    Homes homes(array, ranks, random.one_of({1U, 2U, 7U, 31U}));
    const std::vector<Box> saved = cut_at_random(box_of(array), ranks, random);
    for (std::uint32_t rank = 0; rank < ranks; ++rank) homes.add(rank, saved[rank]);
    std::vector<Box> wanted;
    for (std::uint32_t i = 0; i < 20; ++i) homes.ask(i, wanted.emplace_back(box_at_random(array, random)));
    std::vector<std::multiset<std::uint64_t>> found(wanted.size());
    for (const Directory& home : homes.directories) {
      const auto matched = home.match();
      ASSERT_FALSE(matched.refusal) << matched.refusal->failure.message;
      for (const Match& match : matched.matches) {
        EXPECT_TRUE(contains(saved[match.offer], match.box));
        for_each_element(match.box, array, [&](std::uint64_t at, std::uint64_t) { found[match.want].insert(at); });
      }
    }
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      std::multiset<std::uint64_t> expected;
      for_each_element(wanted[i], array, [&](std::uint64_t at, std::uint64_t) { expected.insert(at); });
      ASSERT_EQ(found[i], expected) << "round " << round;
    }
  }
}

TEST(Directories, NameTheFirstElementThatIsMissing) {
  Homes homes(Shape({6, 4}), 3, 1);
  homes.add(0, box_at(Shape({0, 0}), Shape({3, 4})));
  homes.add(1, box_at(Shape({3, 0}), Shape({3, 2})));
  homes.ask(0, box_at(Shape({1, 1}), Shape({2, 3})));
  EXPECT_EQ(homes.directories[0].match().matches.size(), 1U);
  homes.ask(1, box_at(Shape({2, 1}), Shape({3, 3})));
  const auto refusal = homes.directories[0].match().refusal;
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->failure.code, ErrorCode::mismatch);
  EXPECT_THAT(refusal->failure.message, HasSubstr("global array 'u' (6 x 4): no rank saved element (3, 2)"));
  EXPECT_FALSE(refusal->unknown);
}

TEST(Directories, NoticeBlocksThatHaveElementsInCommon) {
  Homes homes(Shape{6}, 2, 1);
  homes.add(0, box_at(Shape{0}, Shape{4}));
  homes.add(1, box_at(Shape{3}, Shape{3}));
  homes.ask(0, box_of(Shape{6}));
  const auto refusal = homes.directories[0].match().refusal;
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->failure.code, ErrorCode::corrupt);
}

/// The outcome of one row and one request that meet.
std::string refused(LookUp look_up, const ArrayType& saved, const ArrayType& asked) {
  Directory directory(4, 2);
  directory.add({look_up, 0, "u"}, saved, {0, 0, 3, false, box_of(saved.shape)});
  directory.ask({look_up, 0, "u"}, asked, {1, 0, 3, box_of(asked.shape)});
  const auto refusal = directory.match().refusal;
  if (!refusal) return {};
  EXPECT_EQ(refusal->failure.code, ErrorCode::mismatch);
  return refusal->failure.message;
}

TEST(Directories, NameBothTypesAndShapesThatDisagree) {
  const ArrayType saved{DataType::float64, {}, Shape({2, 8})};
  for (const LookUp look_up : {LookUp::shard, LookUp::replicated, LookUp::of_rank, LookUp::only_one}) {
    EXPECT_EQ(refused(look_up, saved, saved), "");
    const auto by_type = refused(look_up, saved, {DataType::float32, {}, Shape({2, 8})});
    EXPECT_THAT(by_type, HasSubstr("float64 of shape 2 x 8, and is asked for as"));
    EXPECT_THAT(by_type, HasSubstr("float32 of shape 2 x 8;"));
    EXPECT_THAT(refused(look_up, saved, {DataType::float64, {}, Shape({8, 2})}), HasSubstr("float64 of shape 8 x 2;"));
    EXPECT_THAT(refused(look_up, {DataType::opaque, "x float64", Shape({2, 8})}, {DataType::opaque, {}, Shape({2, 8})}),
                HasSubstr("structs (x float64) of shape 2 x 8"));
  }
  EXPECT_NE(refused(LookUp::shard, saved, {DataType::float32, {}, Shape({0, 8})}), "") << "without elements, too";
}

TEST(Directories, ShardsOfSeveralTypesAreRefused) {
  Homes homes(Shape{6}, 2, 1);
  homes.add(0, box_at(Shape{0}, Shape{3}));
  homes.ask(0, box_at(Shape{0}, Shape{3}));
  homes.type.dtype = DataType::int32;
  homes.add(1, box_at(Shape{3}, Shape{3}));
  const auto refusal = homes.directories[0].match().refusal;
  ASSERT_TRUE(refusal);
  EXPECT_THAT(refusal->failure.message, HasSubstr("int32 of shape 6, and is asked for as"));
}

TEST(Directories, FindTheRegionOfARankAndTheOnlyOneOfAName) {
  Directory directory(5, 2);
  const auto type_for = [](std::uint32_t rank) { return ArrayType{DataType::int8, {}, Shape{rank + 1}}; };
  for (const std::uint32_t rank : {4U, 0U, 2U}) {
    directory.add({LookUp::of_rank, 0, "r"}, type_for(rank), {1, rank * 10, rank, false, box_of(Shape{rank + 1})});
  }
  directory.add({LookUp::only_one, 0, "box"}, type_for(2), {1, 7, 2, false, box_of(Shape{3})});
  directory.ask({LookUp::of_rank, 0, "r"}, type_for(2), {0, 0, 2, box_of(Shape{3})});
  directory.ask({LookUp::of_rank, 0, "r"}, type_for(4), {0, 1, 4, box_of(Shape{5})});
  directory.ask({LookUp::only_one, 0, "box"}, type_for(2), {0, 2, 0, box_of(Shape{3})});
  std::map<std::uint32_t, std::uint32_t> offers;
  for (const Match& match : directory.match().matches) offers[match.want] = match.offer;
  EXPECT_EQ(offers, (std::map<std::uint32_t, std::uint32_t>{{0, 20}, {1, 40}, {2, 7}}));
  auto other = directory;
  other.ask({LookUp::of_rank, 0, "r"}, type_for(3), {0, 3, 3, box_of(Shape{4})});
  EXPECT_THAT(other.match().refusal->failure.message, HasSubstr("rank 3 saved no region 'r'"));
  EXPECT_EQ(other.match().refusal->failure.code, ErrorCode::not_found);
  other = directory;
  other.add({LookUp::only_one, 0, "box"}, type_for(2), {1, 7, 4, false, box_of(Shape{3})});
  EXPECT_THAT(other.match().refusal->failure.message, HasSubstr("region 'box' was saved by ranks 2 and 4"));
}

TEST(Directories, ServeAReplicatedRegionFromTheNextCopy) {
  const ArrayType type{DataType::int8, {}, Shape{3}};
  const HomedKey key{LookUp::replicated, 0, "p"};
  Directory on_prefix(8, 4);
  Directory in_stores(8, 4);
  for (const std::uint32_t rank : {3U, 1U, 2U}) {
    on_prefix.add(key, type, {static_cast<int>(rank), rank, rank, false, box_of(Shape{3})});
    in_stores.add(key, type, {static_cast<int>(rank), rank, rank, rank != 1, box_of(Shape{3})});
  }
  for (const int process : {0, 1, 2, 3}) {
    for (Directory* directory : {&on_prefix, &in_stores}) directory->ask(key, type, {process, 0, 0, box_of(Shape{3})});
  }
  for (const Match& match : on_prefix.match().matches) EXPECT_EQ(match.offer, 1U) << "the same for all";
  std::map<int, std::uint32_t> offers;
  for (const Match& match : in_stores.match().matches) offers[match.process] = match.offer;
  EXPECT_EQ(offers[2], 2U) << "its own";
  EXPECT_EQ(offers[3], 3U);
  EXPECT_EQ(offers[0], 2U) << "spread over those in stores";
  EXPECT_EQ(offers[1], 3U);
}

TEST(Directories, KnowWhatTheyHaveNeverHeardOf) {
  const UnknownName asked{"u", LookUp::shard, {DataType::int8, {}, Shape{6}}};
  Directory directory(4, 2);
  directory.ask({LookUp::shard, 0, "u"}, asked.type, {0, 0, 0, box_of(Shape{6})});
  const auto refusal = directory.match().refusal;
  ASSERT_TRUE(refusal && refusal->unknown);
  EXPECT_EQ(refusal->unknown->name, "u");
  std::vector<Offer> offers(1);
  offers[0].name = "u";
  offers[0].dtype = DataType::int8;
  offers[0].shape = Shape{6};
  EXPECT_EQ(saved_differently(asked, offers), "a region of one rank alone, int8 of shape 6");
  offers[0].placement = Replicated{};
  EXPECT_EQ(saved_differently(asked, offers), "replicated, int8 of shape 6");
  offers[0].placement = Shard{Shape{7}, Shape{0}};
  EXPECT_EQ(saved_differently(asked, offers), "a block of a global array, int8 of shape 7");
  EXPECT_FALSE(saved_the_same(asked, offers));
  offers[0].placement = Shard{Shape{6}, Shape{0}};
  EXPECT_FALSE(saved_differently(asked, offers));
  EXPECT_TRUE(saved_the_same(asked, offers));
  offers[0].name = "v";
  EXPECT_FALSE(saved_the_same(asked, offers));
}

TEST(Wants, MustLieInTheirArrayAndTheirMemory) {
  EXPECT_FALSE(check(block_of("u", Shape({4, 5}), box_at(Shape({1, 2}), Shape({3, 3})))));
  EXPECT_FALSE(check(block_of("u", Shape({4, 5}), box_at(Shape({4, 5}), Shape({0, 0})))));
  const auto over = check(block_of("u", Shape({4, 5}), box_at(Shape({1, 3}), Shape({3, 3}))));
  ASSERT_TRUE(over);
  EXPECT_EQ(over->code, ErrorCode::mismatch);
  EXPECT_THAT(over->message,
              HasSubstr("shape 3 x 3 at (1 x 3) reaches over the edge of the global array of shape 4 x 5"));
  EXPECT_TRUE(check(block_of("u", Shape({4, 5}), box_at(Shape{1}, Shape{3})))) << "of fewer dimensions";
  Want huge = block_of("u", Shape{4}, box_at(Shape{0}, Shape{2}));
  std::get<Shard>(huge.from).offset = Shape{~std::uint64_t{0}};
  EXPECT_TRUE(check(huge)) << "no sum overflows";
  Want inside = block_of("u", Shape({4, 5}), box_at(Shape({1, 2}), Shape({3, 3})));
  inside.inside = BoxInArray{Shape({4, 4}), {1, 1}};
  EXPECT_FALSE(check(inside));
  inside.inside->at = {2, 1};
  ASSERT_TRUE(check(inside));
  EXPECT_EQ(check(inside)->code, ErrorCode::invalid_argument);
}

}  // namespace
}  // namespace kedge::arrays::directory_test
