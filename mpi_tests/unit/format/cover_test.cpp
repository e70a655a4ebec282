// Whether blocks cover a global array exactly once: against counting every element, with the messages, and large ones
// in time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <random>

#include "base/text.hpp"
#include "format/cover.hpp"

namespace kedge::format::testing::cover_test {
namespace {

using ::testing::HasSubstr;

std::string message(const Shape& whole, const std::vector<SavedBlock>& blocks, bool holes_allowed = false) {
  const auto failure = check_cover("T", whole, blocks, holes_allowed);
  if (!failure) return {};
  EXPECT_EQ(failure->code, ErrorCode::mismatch);
  return failure->message;
}

// The same by counting: slow and plain.
std::string counted(const Shape& whole, const std::vector<SavedBlock>& blocks, bool holes_allowed) {
  std::uint64_t count = 0;
  if (!element_count(whole, count)) throw std::logic_error("too many to count");
  for (std::uint64_t element = 0; element < count; ++element) {
    std::vector<std::uint64_t> point(whole.dimensions());
    for (std::size_t d = whole.dimensions(), rest = element; d-- > 0; rest /= whole[d]) point[d] = rest % whole[d];
    std::vector<std::uint32_t> ranks;
    for (const SavedBlock& block : blocks) {
      bool inside = true;
      for (std::size_t d = 0; d < point.size(); ++d) {
        inside = inside && point[d] >= block.offset[d] && point[d] < block.offset[d] + block.shape[d];
      }
      if (inside) ranks.push_back(block.rank);
    }
    std::ranges::sort(ranks);
    const std::string where = compose("({})", fmt::join(point, ", "));
    if (ranks.size() > 1) return compose("{} ranks {} and {}", where, ranks[0], ranks[1]);
    if (ranks.empty() && !holes_allowed) return where + " hole";
  }
  return {};
}

// The message in the words of counted().
std::string in_short(const std::string& message) {
  if (message.empty()) return {};
  const std::size_t begin = message.find("element (") + 8;
  const std::string where = message.substr(begin, message.find(')', begin) + 1 - begin);
  if (message.find("no rank saves") != std::string::npos) return where + " hole";
  const std::size_t ranks = message.find("ranks");
  return where + " " + message.substr(ranks, message.find(';') - ranks);
}

// Divides the box at random, dimension by dimension in any order.
void divide(std::vector<SavedBlock>& blocks, const SavedBlock& box, std::uint64_t parts, std::mt19937& random) {
  std::vector<std::size_t> long_ones;
  for (std::size_t d = 0; d < box.shape.dimensions(); ++d) {
    if (box.shape[d] > 1) long_ones.push_back(d);
  }
  if (parts < 2 || long_ones.empty()) {
    blocks.push_back(box);
    blocks.back().rank = static_cast<std::uint32_t>(blocks.size() - 1);
    return;
  }
  const std::size_t d = long_ones[random() % long_ones.size()];
  const std::uint64_t cut = 1 + random() % (box.shape[d] - 1);
  std::vector<std::uint64_t> offset(box.offset.extents().begin(), box.offset.extents().end());
  std::vector<std::uint64_t> shape(box.shape.extents().begin(), box.shape.extents().end());
  const std::uint64_t length = shape[d];
  shape[d] = cut;
  divide(blocks, {0, Shape(offset), Shape(shape)}, parts / 2, random);
  shape[d] = length - cut;
  offset[d] += cut;
  divide(blocks, {0, Shape(offset), Shape(shape)}, parts - parts / 2, random);
}

Shape moved(const Shape& shape, std::size_t d, std::uint64_t to) {
  std::vector<std::uint64_t> extents(shape.extents().begin(), shape.extents().end());
  extents[d] = to;
  return Shape(extents);
}

TEST(FormatCover, WholeArraysPass) {
  EXPECT_EQ(message(Shape{4}, {{0, Shape{0}, Shape{4}}}), "");
  EXPECT_EQ(message(Shape{4}, {{3, Shape{2}, Shape{2}}, {1, Shape{0}, Shape{2}}}), "");
  EXPECT_EQ(message(Shape{4}, {{3, Shape{2}, Shape{2}}, {2, Shape{2}, Shape{0}}, {1, Shape{0}, Shape{2}}}), "");
  // Blocks that wind about each other: no plane divides them.
  const std::vector<SavedBlock> wheel{{0, Shape{0, 0}, Shape{1, 2}},
                                      {1, Shape{0, 2}, Shape{2, 1}},
                                      {2, Shape{2, 1}, Shape{1, 2}},
                                      {3, Shape{1, 0}, Shape{2, 1}},
                                      {4, Shape{1, 1}, Shape{1, 1}}};
  EXPECT_EQ(message(Shape{3, 3}, wheel), "");
  EXPECT_THAT(message(Shape{3, 3}, {wheel.begin(), wheel.end() - 1}), HasSubstr("element (1, 1)"));
}

TEST(FormatCover, MessagesNameArrayElementAndRanks) {
  EXPECT_EQ(
      message(Shape{40, 20}, {{0, Shape{0, 0}, Shape{12, 20}}, {1, Shape{13, 0}, Shape{27, 20}}}),
      "global array 'T' (40 x 20): no rank saves element (12, 0); the blocks must cover the whole array (or be saved "
      "with holes_allowed)");
  EXPECT_EQ(message(Shape{40, 20}, {{5, Shape{3, 4}, Shape{1, 1}}, {2, Shape{0, 0}, Shape{40, 20}}}),
            "global array 'T' (40 x 20): element (3, 4) is saved by ranks 2 and 5; save each element on one rank");
  EXPECT_EQ(
      message(Shape{}, {}),
      "global array 'T' (scalar): no rank saves its only element; the blocks must cover the whole array (or be saved "
      "with holes_allowed)");
  EXPECT_EQ(message(Shape{}, {{7, {}, {}}, {4, {}, {}}}),
            "global array 'T' (scalar): its only element is saved by ranks 4 and 7; save each element on one rank");
  EXPECT_THAT(check_cover(std::string(1000, 'n'), Shape{1}, {}, false)->message.size(), ::testing::Lt(300U));
}

TEST(FormatCover, ScalarsEmptyArraysAndEmptyBlocks) {
  EXPECT_EQ(message(Shape{}, {{7, {}, {}}}), "");
  EXPECT_EQ(message(Shape{}, {}, true), "");
  EXPECT_THAT(message(Shape{}, {{7, {}, {}}, {4, {}, {}}}, true), HasSubstr("4 and 7"));
  EXPECT_EQ(message(Shape{0}, {}), "");
  EXPECT_EQ(message(Shape{5, 0}, {{0, Shape{0, 0}, Shape{5, 0}}, {1, Shape{0, 0}, Shape{5, 0}}}), "");
  EXPECT_THAT(message(Shape{3}, {{0, Shape{3}, Shape{0}}}), HasSubstr("element (0)"));
  EXPECT_EQ(message(Shape{3}, {{0, Shape{3}, Shape{0}}}, true), "");
}

TEST(FormatCover, NumbersAtTheEndOfTheirRange) {
  constexpr auto kMax = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(message(Shape{kMax}, {{0, Shape{0}, Shape{kMax - 1}}, {1, Shape{kMax - 1}, Shape{1}}}), "");
  EXPECT_THAT(message(Shape{kMax}, {{0, Shape{0}, Shape{kMax - 1}}}), HasSubstr("(9223372036854775806)"));
  constexpr std::uint64_t kHuge = std::numeric_limits<std::uint64_t>::max();
  EXPECT_THAT(message(Shape{kHuge, kHuge}, {{0, Shape{0, 0}, Shape{kHuge, 1}}}), HasSubstr("(0, 1)"))
      << "the product is nowhere made";
  const Shape eight{2, 1, 2, 1, 2, 1, 1, 3};
  EXPECT_EQ(message(eight, {{0, Shape{0, 0, 0, 0, 0, 0, 0, 0}, eight}}), "");
  EXPECT_THAT(message(eight, {{0, Shape{0, 0, 0, 0, 0, 0, 0, 0}, Shape{2, 1, 2, 1, 2, 1, 1, 2}}}),
              HasSubstr("(0, 0, 0, 0, 0, 0, 0, 2)"));
}

// Divided at random, then a block is dropped, made shorter, moved or doubled: the same answer as counting gives.
TEST(FormatCover, AgreesWithCounting) {
  std::mt19937 random(20260921);
  std::uint64_t wrong = 0;
  for (int round = 0; round < 4000; ++round) {
    const std::size_t dimensions = 1 + random() % 4;
    std::vector<std::uint64_t> extents(dimensions);
    for (auto& extent : extents) extent = 1 + random() % 6;
    const Shape whole(extents);
    std::vector<SavedBlock> blocks;
    divide(blocks, {0, Shape(std::vector<std::uint64_t>(dimensions, 0)), whole}, 1 + random() % 20, random);
    std::ranges::shuffle(blocks, random);
    for (std::uint64_t changes = random() % 4; changes > 0 && !blocks.empty(); --changes) {
      SavedBlock& block = blocks[random() % blocks.size()];
      const std::size_t d = random() % dimensions;
      const std::uint64_t place = random() % whole[d];
      switch (random() % 4) {
        case 0: block = blocks.back(), blocks.pop_back(); break;
        case 1: block.shape = moved(block.shape, d, random() % (block.shape[d] + 1)); break;
        case 2:
          block.offset = moved(block.offset, d, place);
          block.shape = moved(block.shape, d, 1 + random() % (whole[d] - place));
          break;
        default: blocks.push_back(block), blocks.back().rank = 100; break;
      }
    }
    for (const bool holes_allowed : {false, true}) {
      const std::string expected = counted(whole, blocks, holes_allowed);
      ASSERT_EQ(in_short(message(whole, blocks, holes_allowed)), expected) << "round " << round;
      wrong += expected.empty() ? 0U : 1U;
    }
  }
  EXPECT_GT(wrong, 2000U);
}

double seconds(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// Cuts along `order[0]`, each slab then elsewhere along `order[1]`, and so on: 46 to a dimension.
std::vector<SavedBlock> uneven_grid(const std::array<std::size_t, 3>& order) {
  constexpr std::uint64_t kParts = 46;
  std::vector<SavedBlock> blocks;
  for (std::uint64_t i = 0; i < kParts; ++i) {
    for (std::uint64_t j = 0; j < kParts; ++j) {
      for (std::uint64_t k = 0; k < kParts; ++k) {
        const auto cut = [](std::uint64_t n, std::uint64_t shift) {
          return n == 0 ? 0 : n == kParts ? kParts * 100000 : n * 100000 + shift;
        };
        const std::array<std::uint64_t, 3> index{i, j, k};
        const std::array<std::uint64_t, 3> shift{0, 7 * i, 46 * i + j};
        std::array<std::uint64_t, 3> offset{};
        std::array<std::uint64_t, 3> shape{};
        for (std::size_t d = 0; d < 3; ++d) {
          offset[order[d]] = cut(index[d], shift[d]);
          shape[order[d]] = cut(index[d] + 1, shift[d]) - offset[order[d]];
        }
        blocks.push_back({static_cast<std::uint32_t>(blocks.size()), Shape(offset), Shape(shape)});
      }
    }
  }
  return blocks;
}

TEST(FormatCover, ALargeUnevenGridTakesLittleTime) {
  const Shape whole{4600000, 4600000, 4600000};
  for (const std::array<std::size_t, 3> order : {std::array<std::size_t, 3>{0, 1, 2}, {2, 1, 0}, {1, 2, 0}}) {
    auto blocks = uneven_grid(order);
    std::string said;
    const double right_s = seconds([&] { said = message(whole, blocks); });
    EXPECT_EQ(said, "");
    blocks.erase(blocks.begin() + 50000);
    const double hole_s = seconds([&] { said = message(whole, blocks); });
    EXPECT_THAT(said, HasSubstr("no rank saves"));
    // As if each rank saved its ghost cells too.
    for (SavedBlock& block : blocks) {
      for (std::size_t d = 0; d < 3; ++d) {
        if (block.offset[d] != 0) {
          block.shape = moved(block.shape, d, block.shape[d] + 1);
          block.offset = moved(block.offset, d, block.offset[d] - 1);
        }
      }
    }
    const double overlap_s = seconds([&] { said = message(whole, blocks); });
    EXPECT_THAT(said, HasSubstr("is saved by ranks"));
    std::printf("%zu blocks: right %.3f s, a hole %.3f s, ghosts %.3f s\n", blocks.size(), right_s, hole_s, overlap_s);
    EXPECT_LT(right_s, 10);  // sanitizers and busy machines included
    EXPECT_LT(hole_s, 10);
    EXPECT_LT(overlap_s, 10);
  }
}

TEST(FormatCover, AThousandArraysTakeLittleTime) {
  std::mt19937 random(1);
  std::vector<SavedBlock> blocks;
  divide(blocks, {0, Shape{0, 0, 0}, Shape{1000, 1000, 1000}}, 64, random);
  ASSERT_EQ(blocks.size(), 64U);
  const double taken_s = seconds([&] {
    for (int i = 0; i < 1000; ++i) ASSERT_EQ(message(Shape{1000, 1000, 1000}, blocks), "");
  });
  std::printf("1000 arrays of 64 blocks: %.3f s\n", taken_s);
  EXPECT_LT(taken_s, 5);
}

}  // namespace
}  // namespace kedge::format::testing::cover_test
