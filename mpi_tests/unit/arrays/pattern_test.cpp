// Patterns of boxes: each byte of a box goes from its place in the stored block to its place in memory, whatever the
// dimensions, and a part of the stored bytes has those bytes of the box that lie in it.
#include "arrays/pattern.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "base/invariant.hpp"
#include "base/text.hpp"
#include "harness/saved_arrays.hpp"

namespace kedge::arrays::pattern_test {
namespace {

using faults::RandomChoices;

struct Case {
  Shape shape;
  BoxInArray stored;
  BoxInArray memory;
  std::uint64_t element_bytes = 1;
};

Case case_at_random(std::size_t dimensions, RandomChoices& random) {
  Case one;
  Point shape{};
  Point stored{};
  Point memory{};
  const std::uint64_t most = dimensions > 4 ? 2 : dimensions > 2 ? 4 : 9;
  for (std::size_t d = 0; d < dimensions; ++d) {
    shape[d] = random.one_in(30) ? 0 : 1 + random.below(most);
    one.stored.at[d] = random.one_in(2) ? 0 : random.below(3);
    one.memory.at[d] = random.one_in(2) ? 0 : random.below(3);
    stored[d] = shape[d] + one.stored.at[d] + (random.one_in(2) ? 0 : random.below(3));
    memory[d] = shape[d] + one.memory.at[d] + (random.one_in(2) ? 0 : random.below(3));
  }
  const auto shape_of = [&](const Point& extents) {
    return Shape(std::span<const std::uint64_t>(extents).first(dimensions));
  };
  one.shape = shape_of(shape);
  one.stored.extents = shape_of(stored);
  one.memory.extents = shape_of(memory);
  one.element_bytes = random.one_of({1U, 2U, 4U, 8U, 16U, 24U});
  return one;
}

/// Where each byte of the box lies in an array, one after the other.
std::vector<std::uint64_t> offsets_of(const Case& one, const BoxInArray& array) {
  std::vector<std::uint64_t> offsets;
  Box box = box_of(one.shape);
  for (std::size_t d = 0; d < box.dimensions; ++d) {
    box.begin[d] += array.at[d];
    box.end[d] += array.at[d];
  }
  for_each_element(box, array.extents, [&](std::uint64_t position, std::uint64_t) {
    for (std::uint64_t i = 0; i < one.element_bytes; ++i) offsets.push_back(position * one.element_bytes + i);
  });
  return offsets;
}

std::vector<std::byte> bytes_of(const BoxInArray& array, std::uint64_t element_bytes, RandomChoices& random) {
  std::vector<std::byte> bytes(volume(box_of(array.extents)) * element_bytes);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.below(256));
  return bytes;
}

TEST(Patterns, EachByteOfABoxGoesToItsPlace) {
  RandomChoices random(1);
  for (int round = 0; round < 900; ++round) {
    const Case one = case_at_random(static_cast<std::size_t>(round) % 9, random);
    SCOPED_TRACE(compose("round {}, {}", round, to_string(one.shape)));
    const Pattern pattern(one.shape, one.element_bytes, one.stored, one.memory);
    const auto from = offsets_of(one, one.stored);
    const auto to = offsets_of(one, one.memory);
    ASSERT_EQ(pattern.size_bytes(), from.size());
    const auto stored = bytes_of(one.stored, one.element_bytes, random);
    auto expected = bytes_of(one.memory, one.element_bytes, random);
    const std::uint64_t begin = random.below(stored.size() + 1);
    const std::uint64_t end = begin + random.below(stored.size() - begin + 1);
    const PackedRange range = pattern.stored_in(begin, end);
    auto by_copy = expected;
    auto by_message = expected;
    for (std::size_t i = 0; i < from.size(); ++i) {
      if (from[i] >= begin && from[i] < end) expected[to[i]] = stored[from[i]];
    }
    const auto piece = std::span(stored).subspan(begin, end - begin);
    copy(pattern, range, piece, begin, by_copy.data());
    EXPECT_TRUE(by_copy == expected);
    std::vector<std::byte> packed(range.size_bytes());
    gather(pattern, range, piece, begin, packed);
    const std::uint64_t middle = range.first + random.below(range.size_bytes() + 1);  // in two messages
    scatter(pattern, {range.first, middle}, std::span(packed).first(middle - range.first), by_message.data());
    scatter(pattern, {middle, range.last}, std::span(packed).subspan(middle - range.first), by_message.data());
    EXPECT_TRUE(by_message == expected);
  }
}

TEST(Patterns, CountTheBytesBelowEachOffset) {
  RandomChoices random(2);
  for (int round = 0; round < 90; ++round) {
    const Case one = case_at_random(static_cast<std::size_t>(round) % 9, random);
    const Pattern pattern(one.shape, one.element_bytes, one.stored, one.memory);
    const auto from = offsets_of(one, one.stored);
    std::size_t below = 0;
    for (std::uint64_t offset = 0; offset < volume(box_of(one.stored.extents)) * one.element_bytes + 3; ++offset) {
      while (below < from.size() && from[below] < offset) ++below;
      ASSERT_EQ(pattern.count_below(offset), below) << "round " << round << ", offset " << offset;
    }
    if (from.empty()) continue;
    EXPECT_EQ(pattern.first_stored(), from.front());
    EXPECT_EQ(pattern.end_stored(), from.back() + 1);
  }
}

TEST(Patterns, JoinWhatIsContiguousInBothArrays) {
  const BoxInArray whole{Shape({4, 5, 6}), {}};
  const Pattern all(Shape({4, 5, 6}), 8, whole, whole);
  EXPECT_EQ(all.levels(), 0U);
  EXPECT_EQ(all.run_bytes(), 4U * 5 * 6 * 8);
  const Pattern rows(Shape({2, 5, 6}), 8, {Shape({4, 5, 6}), {1}}, {Shape({2, 5, 6}), {}});
  EXPECT_EQ(rows.levels(), 0U);
  const Pattern columns(Shape({4, 5, 1}), 8, {Shape({4, 5, 6}), {0, 0, 2}}, {Shape({4, 5, 1}), {}});
  EXPECT_EQ(columns.levels(), 1U) << "one stride through both dimensions";
  EXPECT_EQ(columns.run_bytes(), 8U);
  const Pattern inside(Shape({4, 5, 6}), 8, whole, {Shape({6, 7, 8}), {1, 1, 1}});
  EXPECT_EQ(inside.levels(), 2U);
  EXPECT_LE(sizeof(Pattern), 320U) << "whatever the box";
}

TEST(Patterns, RefuseAPieceThatLacksBytes) {
  const BoxInArray array{Shape{8}, {}};
  const Pattern pattern(Shape{8}, 1, array, array);
  std::vector<std::byte> bytes(8);
  std::vector<std::byte> memory(8);
  const std::span<const std::byte> piece(bytes);
  EXPECT_THROW(copy(pattern, {0, 8}, piece.first(7), 0, memory.data()), BrokenInvariant);
  EXPECT_THROW(copy(pattern, {0, 8}, piece.subspan(1), 1, memory.data()), BrokenInvariant);
  EXPECT_THROW(gather(pattern, {0, 8}, piece, 0, std::span(memory).first(7)), BrokenInvariant);
  EXPECT_THROW(scatter(pattern, {0, 8}, piece.first(7), memory.data()), BrokenInvariant);
}

}  // namespace
}  // namespace kedge::arrays::pattern_test
