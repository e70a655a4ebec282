// Boxes, tiles and the tree: the first hole is the one that a search of all elements finds, tiles cover an array once,
// and the tree finds every overlap and nothing else.
#include "arrays/box.hpp"

#include <gtest/gtest.h>

#include <set>

#include "arrays/box_tree.hpp"
#include "arrays/tiles.hpp"
#include "harness/saved_arrays.hpp"

namespace kedge::arrays::box_test {
namespace {

using faults::RandomChoices;

Shape shape_at_random(std::size_t dimensions, std::uint64_t most, RandomChoices& random) {
  Point extents{};
  for (std::size_t d = 0; d < dimensions; ++d) extents[d] = 1 + random.below(most);
  return Shape(std::span<const std::uint64_t>(extents).first(dimensions));
}

TEST(Boxes, TheFirstElementInNoneIsTheFirstOfAll) {
  RandomChoices random(1);
  int holes = 0;
  for (int round = 0; round < 900; ++round) {
    const Shape array = shape_at_random(1 + random.below(4), 6, random);
    std::vector<Box> parts = cut_at_random(box_of(array), 1 + random.below(9), random);
    if (!random.one_in(3)) parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(random.below(parts.size())));
    const Box whole = box_at_random(array, random);
    std::set<std::uint64_t> covered;
    for (const Box& part : parts) {
      for_each_element(part, array, [&](std::uint64_t position, std::uint64_t) { covered.insert(position); });
    }
    std::optional<std::uint64_t> first;
    for_each_element(whole, array, [&](std::uint64_t position, std::uint64_t) {
      if (!first && !covered.contains(position)) first = position;
    });
    const auto found = first_element_in_none(whole, parts);
    ASSERT_EQ(found.has_value(), first.has_value()) << "round " << round;
    if (!found) continue;
    ++holes;
    std::uint64_t position = 0;
    for (std::size_t d = 0; d < array.dimensions(); ++d) position = position * array[d] + (*found)[d];
    EXPECT_EQ(position, *first) << "round " << round;
  }
  EXPECT_GT(holes, 50);
}

TEST(Boxes, AScalarIsAHoleOrNot) {
  const Box scalar = box_of(Shape{});
  EXPECT_EQ(volume(scalar), 1U);
  EXPECT_TRUE(first_element_in_none(scalar, {}));
  EXPECT_FALSE(first_element_in_none(scalar, std::span(&scalar, 1)));
}

TEST(Tiles, CoverAnArrayOnceAndKnowWhereABoxIs) {
  RandomChoices random(2);
  for (int round = 0; round < 300; ++round) {
    const Shape array = shape_at_random(1 + random.below(3), 40, random);
    const std::uint64_t processes = 1 + random.below(30);
    const Tiles tiles(array, random.below(64 * 40), processes);
    ASSERT_GE(tiles.count(), 1U);
    ASSERT_LE(tiles.count(), processes);
    std::uint64_t covered = 0;
    const Box box = box_at_random(array, random);
    const Tiles::Range range = tiles.of(box);
    ASSERT_LT(range.last, tiles.count());
    for (std::uint64_t tile = 0; tile < tiles.count(); ++tile) {
      covered += volume(tiles.tile(tile));
      const bool meets = volume(box) > 0 && overlap(tiles.tile(tile), box);
      EXPECT_EQ(meets, volume(box) > 0 && range.first <= tile && tile <= range.last);
    }
    EXPECT_EQ(covered, volume(box_of(array)));
  }
}

TEST(Tiles, AreAsManyAsProcessesOrSixtyFourthsOfTheRanks) {
  EXPECT_EQ(Tiles(Shape({7, 100'000}), 64, 50).count(), 1U);
  EXPECT_EQ(Tiles(Shape({7, 100'000}), 6400, 50).count(), 50U);
  EXPECT_EQ(Tiles(Shape({7, 100'000}), 640, 50).count(), 10U);
  EXPECT_EQ(Tiles(Shape({7, 100'000}), 640, 50).tile(3), box_at(Shape({0, 30'000}), Shape({7, 10'000})));
  EXPECT_EQ(Tiles(Shape{}, 6400, 50).count(), 1U);
  EXPECT_EQ(Tiles(Shape({0, 100'000}), 6400, 50).count(), 1U);
  EXPECT_EQ(Tiles(Shape{std::uint64_t{1} << 63U}, 6400, 50).count(), 50U) << "without overflow";
}

TEST(Tiles, HaveDifferentHomes) {
  std::set<int> homes;
  for (std::uint64_t tile = 0; tile < 17; ++tile) homes.insert(home_of("temperature", tile, 17));
  EXPECT_EQ(homes.size(), 17U);
  EXPECT_EQ(*homes.begin(), 0);
  EXPECT_EQ(home_of("temperature", 5, 1), 0);
}

TEST(BoxTree, FindsAllThatOverlapAndNothingElse) {
  RandomChoices random(3);
  for (int round = 0; round < 200; ++round) {
    const Shape array = shape_at_random(1 + random.below(8), round % 2 == 0 ? 4 : 30, random);
    std::vector<Box> boxes = cut_at_random(box_of(array), 1 + random.below(60), random);
    for (std::uint64_t more = random.below(20); more > 0; --more) boxes.push_back(box_at_random(array, random));
    const BoxTree tree(boxes);
    for (int asked = 0; asked < 10; ++asked) {
      const Box box = box_at_random(array, random);
      if (volume(box) == 0) continue;
      std::multiset<std::uint32_t> found;
      tree.for_each_overlap(box, [&](std::uint32_t i) { found.insert(i); });
      std::multiset<std::uint32_t> expected;
      for (std::uint32_t i = 0; i < boxes.size(); ++i) {
        if (volume(boxes[i]) > 0 && overlap(boxes[i], box)) expected.insert(i);
      }
      ASSERT_EQ(found, expected) << "round " << round;
    }
  }
}

TEST(BoxTree, OfNothingFindsNothing) {
  const BoxTree tree({});
  tree.for_each_overlap(box_of(Shape{3}), [](std::uint32_t) { FAIL(); });
}

}  // namespace
}  // namespace kedge::arrays::box_test
