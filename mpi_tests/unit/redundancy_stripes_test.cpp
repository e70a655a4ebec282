// Stripes are carried out naively in memory, for every combination of lost files.
#include <gtest/gtest.h>

#include <algorithm>
#include <bitset>

#include "redundancy/plan_pieces.hpp"
#include "unit/redundancy_support.hpp"

namespace kedge::redundancy {
namespace {

/// Bit i of `lost_containers`, `lost_parities`: that of member i is gone.
Presence presence(std::size_t members, std::uint32_t lost_containers, std::uint32_t lost_parities) {
  Presence present;
  for (std::size_t member = 0; member < members; ++member) {
    present.container.push_back((lost_containers >> member & 1U) == 0);
    present.parity.push_back((lost_parities >> member & 1U) == 0);
  }
  return present;
}

/// Bits rotated to the next member.
std::uint32_t next_members(std::uint32_t bits, std::size_t members) {
  return (bits << 1U | bits >> (members - 1)) & ((1U << members) - 1);
}

bool should_decode(Scheme scheme, std::size_t members, std::uint32_t lost_containers, std::uint32_t lost_parities) {
  if (scheme == Scheme::xor_) return std::bitset<32>(lost_containers | lost_parities).count() <= 1;
  return (next_members(lost_containers, members) & lost_parities) == 0;
}

void check_stripes(const SetShape& set, const std::vector<Stripe>& stripes) {
  for (const Stripe& stripe : stripes) {
    for (const Input& input : stripe.inputs) {
      EXPECT_GT(input.length, 0U);
      EXPECT_LE(input.length, stripe.length);
      EXPECT_NE(input.member, stripe.target);
    }
    EXPECT_LT(stripe.target, set.sizes.size());
  }
}

/// Stripes of one lost file follow each other and cover it.
void check_cover(const std::vector<Stripe>& stripes, std::uint32_t target, Part part, std::uint64_t size) {
  std::uint64_t covered = 0;
  bool ended = false;
  for (const Stripe& stripe : stripes) {
    if (stripe.target != target || stripe.part != part) {
      ended = covered > 0;
      continue;
    }
    EXPECT_FALSE(ended) << "another file's stripe lies between";
    EXPECT_EQ(stripe.offset, covered);
    covered += stripe.length;
  }
  EXPECT_EQ(covered, size);
}

/// Loses these files and makes them again, if they can be.
void lose_and_decode(const SetShape& set, const SetFiles& files, std::uint32_t containers, std::uint32_t parities) {
  const std::size_t members = set.sizes.size();
  const Presence present = presence(members, containers, parities);
  const bool expected = should_decode(set.scheme, members, containers, parities);
  ASSERT_EQ(can_decode(set.scheme, present), expected);
  if (!expected) {
    EXPECT_THROW(static_cast<void>(decode_stripes(set, present)), Error);
    return;
  }
  SetFiles left = files;
  for (std::uint32_t member = 0; member < members; ++member) {
    if (!present.container[member]) std::ranges::fill(left.container[member], std::byte{0x11});
    if (!present.parity[member]) std::ranges::fill(left.parity[member], std::byte{0x22});
  }
  const auto stripes = decode_stripes(set, present);
  check_stripes(set, stripes);
  for (std::uint32_t member = 0; member < members; ++member) {
    check_cover(stripes, member, Part::container, present.container[member] ? 0 : set.sizes[member]);
    check_cover(stripes, member, Part::parity, present.parity[member] ? 0 : parity_bytes(set, member));
  }
  execute(left, stripes);
  EXPECT_TRUE(left == files);
}

/// All empty, all equal, and around the edges of segments.
std::vector<std::vector<std::uint64_t>> sizes_of(std::size_t members) {
  const std::uint64_t edge = 4096 * (members - 1);
  const std::vector<std::uint64_t> choice = {edge + 1, 0, 1, 4095, 4096, 4097, edge, edge - 1};
  std::vector<std::vector<std::uint64_t>> all = {std::vector<std::uint64_t>(members, 0),
                                                 std::vector<std::uint64_t>(members, 5000)};
  for (std::size_t turn = 0; turn < choice.size(); ++turn) {
    std::vector<std::uint64_t> sizes;
    for (std::size_t member = 0; member < members; ++member) sizes.push_back(choice[(turn + member) % choice.size()]);
    all.push_back(std::move(sizes));
  }
  return all;
}

class StripesOf : public testing::TestWithParam<Scheme> {};

TEST_P(StripesOf, ParityIsWhatTheHeaderSays) {
  for (std::size_t members = 2; members <= 8; ++members) {
    for (const auto& sizes : sizes_of(members)) {
      const SetShape set{GetParam(), sizes};
      const auto stripes = encode_stripes(set);
      ASSERT_EQ(stripes.size(), members);
      check_stripes(set, stripes);
      const SetFiles files = encoded(set);
      const std::uint64_t longest = *std::ranges::max_element(sizes);
      const std::uint64_t segment = ((longest + members - 2) / (members - 1) + 4095) / 4096 * 4096;
      for (std::uint32_t member = 0; member < members; ++member) {
        EXPECT_EQ(stripes[member].target, member);
        EXPECT_EQ(stripes[member].part, Part::parity);
        EXPECT_EQ(stripes[member].offset, 0U);
        EXPECT_EQ(stripes[member].length, parity_bytes(set, member));
        if (set.scheme == Scheme::partner) {
          EXPECT_TRUE(files.parity[member] == files.container[(member + members - 1) % members]);
        } else {
          EXPECT_EQ(parity_bytes(set, member), segment);
        }
      }
    }
  }
}

TEST_P(StripesOf, EveryCombinationOfLostContainersAndParitiesOfUpToFourMembers) {
  for (std::size_t members = 2; members <= 4; ++members) {
    for (const auto& sizes : sizes_of(members)) {
      const SetShape set{GetParam(), sizes};
      const SetFiles files = encoded(set);
      for (std::uint32_t containers = 0; containers < 1U << members; ++containers) {
        for (std::uint32_t parities = 0; parities < 1U << members; ++parities) {
          SCOPED_TRACE(testing::PrintToString(sizes) + " without containers " + std::to_string(containers) +
                       " and parities " + std::to_string(parities));
          lose_and_decode(set, files, containers, parities);
        }
      }
    }
  }
}

TEST_P(StripesOf, EverySubsetOfLostMembersOfUpToEight) {
  for (std::size_t members = 2; members <= 8; ++members) {
    for (const auto& sizes : sizes_of(members)) {
      const SetShape set{GetParam(), sizes};
      const SetFiles files = encoded(set);
      for (std::uint32_t lost = 0; lost < 1U << members; ++lost) {
        SCOPED_TRACE(testing::PrintToString(sizes) + " without members " + std::to_string(lost));
        lose_and_decode(set, files, lost, lost);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, StripesOf, testing::Values(Scheme::partner, Scheme::xor_),
                         [](const auto& test) { return test.param == Scheme::xor_ ? "Xor" : "Partner"; });

TEST(Stripes, RefuseWhatIsNoSet) {
  EXPECT_THROW(static_cast<void>(encode_stripes({Scheme::xor_, {100}})), Error);
  EXPECT_THROW(static_cast<void>(encode_stripes({Scheme::single, {100, 100}})), Error);
  EXPECT_TRUE(can_decode(Scheme::single, presence(2, 0, 3)));
  EXPECT_FALSE(can_decode(Scheme::single, presence(2, 2, 0)));
}

TEST(Pieces, StayWithinTheBudgetAndTheirLimits) {
  constexpr std::uint64_t kBudget = std::uint64_t{16} << 20U;
  for (std::uint64_t members = 2; members <= 33; ++members) {
    const std::uint64_t bytes = piece_bytes(members, kBudget);
    EXPECT_LE((kStepsAhead * (members - 1) + 2) * bytes, kBudget);
    EXPECT_GE(bytes, kLeastPieceBytes);
    EXPECT_LE(bytes, kMostPieceBytes);
    EXPECT_EQ(bytes % 4096, 0U);
  }
  EXPECT_EQ(piece_bytes(2, kBudget), kMostPieceBytes);
  EXPECT_EQ(piece_bytes(10'000, kBudget), kLeastPieceBytes);
}

TEST(Pieces, CoverTheWhole) {
  EXPECT_EQ(piece_of(0, 100, 0).length, 0U);
  EXPECT_EQ(piece_of(0, 100, 100).length, 100U);
  EXPECT_EQ(piece_of(1, 100, 100).length, 0U);
  EXPECT_EQ(piece_of(1, 100, 101).begin, 100U);
  EXPECT_EQ(piece_of(1, 100, 101).length, 1U);
}

TEST(Waves, HoldStripesOfDifferentTargetsThatNeedNothingOfEachOther) {
  const auto stripe = [](std::uint32_t target, Part part, std::vector<Input> inputs) {
    return Stripe{target, part, 0, 10, std::move(inputs)};
  };
  EXPECT_TRUE(waves({}).empty());
  EXPECT_EQ(waves(encode_stripes({Scheme::xor_, {9, 9, 9, 9}})), std::vector<std::size_t>{4});
  EXPECT_EQ(waves(std::vector{stripe(0, Part::container, {}), stripe(0, Part::container, {}),
                              stripe(1, Part::container, {}), stripe(0, Part::parity, {})}),
            (std::vector<std::size_t>{1, 2, 1}));
  EXPECT_EQ(waves(std::vector{stripe(0, Part::container, {}), stripe(1, Part::parity, {{0, Part::container, 0, 5}})}),
            (std::vector<std::size_t>{1, 1}));
  EXPECT_EQ(waves(std::vector{stripe(0, Part::container, {}), stripe(1, Part::parity, {{0, Part::parity, 0, 5}})}),
            std::vector<std::size_t>{2});
}

}  // namespace
}  // namespace kedge::redundancy
