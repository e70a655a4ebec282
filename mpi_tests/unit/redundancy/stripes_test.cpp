// Stripes are carried out naively in memory, for every combination of lost files: as many losses as there is parity.
#include <gtest/gtest.h>

#include <algorithm>
#include <bitset>

#include "harness/redundancy_support.hpp"
#include "redundancy/exchange.hpp"
#include "redundancy/plan_stripes.hpp"

namespace kedge::redundancy::stripes_test {
namespace {

/// Bit i of `lost_containers`, `lost_parities`: that of member i is gone.
PresentFiles presence(std::size_t members, std::uint32_t lost_containers, std::uint32_t lost_parities) {
  PresentFiles present;
  for (std::size_t member = 0; member < members; ++member) {
    present.container.push_back((lost_containers >> member & 1U) == 0);
    present.parity.push_back((lost_parities >> member & 1U) == 0);
  }
  return present;
}

/// Bits rotated to the next member.
std::uint32_t next_members(std::uint32_t bits, std::size_t members) {
  return (bits << 1U | bits >> (members - 1)) & (~std::uint32_t{0} >> (32 - members));
}

bool should_decode(const SetShape& set, std::uint32_t lost_containers, std::uint32_t lost_parities) {
  const std::size_t members = set.sizes.size();
  if (set.scheme != Scheme::partner)
    return std::bitset<32>(lost_containers | lost_parities).count() <= set.parity_count;
  return (next_members(lost_containers, members) & lost_parities) == 0;
}

void check_stripes(const SetShape& set, const std::vector<Stripe>& stripes) {
  for (const Stripe& stripe : stripes) {
    for (const StripeInput& input : stripe.inputs) {
      EXPECT_GT(input.length, 0U);
      EXPECT_LE(input.length, stripe.length);
      EXPECT_NE(input.member, stripe.target);
      EXPECT_NE(input.coefficient, 0U);
      // Nobody has to wait for what another stripe makes.
      for (const Stripe& other : stripes) EXPECT_FALSE(other.target == input.member && other.part == input.part);
    }
    EXPECT_LT(stripe.target, set.sizes.size());
  }
}

/// Stripes of one lost file follow each other by offset and cover it.
void check_cover(const std::vector<Stripe>& stripes, std::uint32_t target, MemberPart part, std::uint64_t size) {
  std::uint64_t covered = 0;
  for (const Stripe& stripe : stripes) {
    if (stripe.target != target || stripe.part != part) continue;
    EXPECT_EQ(stripe.offset, covered);
    covered += stripe.length;
  }
  EXPECT_EQ(covered, size);
}

/// Loses these files and makes them again, if they can be.
void lose_and_decode(const SetShape& set, const SetFiles& files, std::uint32_t containers, std::uint32_t parities) {
  const std::size_t members = set.sizes.size();
  const PresentFiles present = presence(members, containers, parities);
  const bool expected = should_decode(set, containers, parities);
  ASSERT_EQ(can_decode(set.scheme, set.parity_count, present), expected);
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
    check_cover(stripes, member, MemberPart::container, present.container[member] ? 0 : set.sizes[member]);
    check_cover(stripes, member, MemberPart::parity, present.parity[member] ? 0 : parity_bytes(set, member));
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

struct Kind {
  Scheme scheme;
  std::uint32_t parities = 1;

  [[nodiscard]] std::size_t least_members() const { return parities + 1; }
};

class StripesOf : public testing::TestWithParam<Kind> {};

/// Byte by byte as format.md says it, not by stripes.
void check_parity(const SetShape& set, const SetFiles& files) {
  const std::size_t members = set.sizes.size();
  const std::size_t data = members - set.parity_count;
  const std::uint64_t longest = *std::ranges::max_element(set.sizes);
  const std::uint64_t segment = ((longest + data - 1) / data + 4095) / 4096 * 4096;
  std::vector<std::uint64_t> used(members, 0);  // segments of each container
  for (std::size_t stripe = 0; stripe < members; ++stripe) {
    for (std::size_t j = 0; j < set.parity_count; ++j) {
      const std::size_t keeper = (stripe + j) % members;
      ASSERT_EQ(files.parity[keeper].size(), set.parity_count * segment);
      for (std::uint64_t i = 0; i < segment; ++i) {
        std::byte sum{0};
        for (std::size_t k = 0; k < data; ++k) {
          const std::size_t member = (stripe + set.parity_count + k) % members;
          const std::uint64_t at = used[member] * segment + i;
          if (at >= set.sizes[member]) continue;
          const auto divisor = static_cast<std::uint8_t>((data + j) ^ k);
          std::uint8_t coefficient = 1;
          while (set.parity_count > 1 && times(divisor, std::byte{coefficient}) != std::byte{1}) ++coefficient;
          sum ^= times(coefficient, files.container[member][at]);
        }
        ASSERT_EQ(files.parity[keeper][j * segment + i], sum) << "stripe " << stripe << " parity " << j;
      }
    }
    for (std::size_t k = 0; k < data; ++k) ++used[(stripe + set.parity_count + k) % members];
  }
}

TEST_P(StripesOf, ParityIsWhatTheFormatSays) {
  for (std::size_t members = GetParam().least_members(); members <= 6; ++members) {
    for (const auto& sizes : {sizes_of(members)[1], sizes_of(members)[2], sizes_of(members)[5]}) {
      const SetShape set{GetParam().scheme, sizes, GetParam().parities};
      check_stripes(set, encode_stripes(set));
      const SetFiles files = encoded(set);
      if (set.scheme != Scheme::partner) {
        check_parity(set, files);
        continue;
      }
      for (std::uint32_t member = 0; member < members; ++member) {
        EXPECT_TRUE(files.parity[member] == files.container[(member + members - 1) % members]);
      }
    }
  }
}

TEST_P(StripesOf, ParityCoversEachFileInOrder) {
  for (std::size_t members = GetParam().least_members(); members <= 8; ++members) {
    for (const auto& sizes : sizes_of(members)) {
      const SetShape set{GetParam().scheme, sizes, GetParam().parities};
      const auto stripes = encode_stripes(set);
      check_stripes(set, stripes);
      for (std::uint32_t member = 0; member < members; ++member) {
        check_cover(stripes, member, MemberPart::parity, parity_bytes(set, member));
        check_cover(stripes, member, MemberPart::container, 0);
      }
    }
  }
}

TEST_P(StripesOf, EveryCombinationOfLostContainersAndParitiesOfUpToFourMembers) {
  for (std::size_t members = GetParam().least_members(); members <= 4; ++members) {
    for (const auto& sizes : sizes_of(members)) {
      const SetShape set{GetParam().scheme, sizes, GetParam().parities};
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

TEST_P(StripesOf, EverySubsetOfLostMembersOfUpToSix) {
  for (std::size_t members = GetParam().least_members(); members <= 6; ++members) {
    for (const auto& sizes : sizes_of(members)) {
      const SetShape set{GetParam().scheme, sizes, GetParam().parities};
      const SetFiles files = encoded(set);
      for (std::uint32_t lost = 0; lost < 1U << members; ++lost) {
        SCOPED_TRACE(testing::PrintToString(sizes) + " without members " + std::to_string(lost));
        lose_and_decode(set, files, lost, lost);
      }
    }
  }
}

TEST_P(StripesOf, LargeSetsOfUpTo32) {
  for (const std::size_t members : {7U, 8U, 16U, 31U, 32U}) {
    std::vector<std::uint64_t> sizes;
    for (std::size_t i = 0; i < members; ++i) sizes.push_back(i * 4097 % 30'000);
    const SetShape set{GetParam().scheme, sizes, GetParam().parities};
    const SetFiles files = encoded(set);
    for (std::size_t first = 0; first < members; first += 5) {
      std::uint32_t lost = 0;
      for (std::size_t i = 0; i < GetParam().parities; ++i) lost |= 1U << ((first + 3 * i) % members);
      SCOPED_TRACE(std::to_string(members) + " members without " + std::to_string(lost));
      lose_and_decode(set, files, lost, lost);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, StripesOf,
                         testing::Values(Kind{Scheme::partner}, Kind{Scheme::xor_}, Kind{Scheme::rs, 2},
                                         Kind{Scheme::rs, 3}, Kind{Scheme::rs, 4}),
                         [](const auto& test) {
                           return std::string(to_string(test.param.scheme)) + std::to_string(test.param.parities);
                         });

TEST(Stripes, AFlippedBitThatOneOfTwoReadsSawIsNoticed) {
  // rs reads each byte for several parities: all reads must have seen the same.
  const SetShape set{Scheme::rs, {9000, 9000, 9000, 9000}, 2};
  const SetFiles files = encoded(set);
  const auto stripes = encode_stripes(set);
  StripeChecksums passed;
  for (const Stripe& stripe : stripes) {
    std::uint32_t crc = 0;
    for (const StripeInput& input : stripe.inputs) {
      if (input.member == 1) crc = crc32c(std::span(files.container[1]).subspan(input.offset, input.length));
    }
    passed.read.push_back(crc);
  }
  MemoryFile container(files.container[1]);
  const MemberFile file{&container, {}, 0};
  const std::uint32_t recorded = crc32c(files.container[1]);
  EXPECT_TRUE(matches_recorded(1, MemberPart::container, {9000, recorded}, stripes, passed, file));
  EXPECT_FALSE(matches_recorded(1, MemberPart::container, {9000, recorded ^ 1U}, stripes, passed, file));
  for (std::size_t i = 0; i < stripes.size(); ++i) {
    const bool reads =
        std::ranges::any_of(stripes[i].inputs, [](const StripeInput& input) { return input.member == 1; });
    if (!reads) continue;
    passed.read[i] ^= 4U;
    EXPECT_FALSE(matches_recorded(1, MemberPart::container, {9000, recorded}, stripes, passed, file)) << i;
    passed.read[i] ^= 4U;
  }
}

TEST(Stripes, WhatNoStripeReadIsReadToKnowTheWhole) {
  const SetFiles files = encoded({Scheme::xor_, {9000, 9000, 9000, 9000}});
  const std::vector<Stripe> stripes = {{0, MemberPart::parity, 0, 4096, {{1, MemberPart::container, 4096, 4096}}}};
  StripeChecksums passed;
  passed.read = {crc32c(std::span(files.container[1]).subspan(4096, 4096))};
  const RecordedPart recorded{9000, crc32c(files.container[1])};
  for (const std::uint64_t begin : {0U, 4096U}) {
    const auto as_recorded = [&](std::uint32_t member, const Bytes& bytes) {
      Bytes whole(begin);
      whole.insert(whole.end(), bytes.begin(), bytes.end());
      MemoryFile file(whole);
      return matches_recorded(member, MemberPart::container, recorded, stripes, passed, {&file, {}, begin});
    };
    EXPECT_TRUE(as_recorded(1, files.container[1]));
    EXPECT_TRUE(as_recorded(2, files.container[1])) << "nothing of it was read before";
    for (const std::uint64_t at : {0U, 4095U, 8192U, 8999U}) {
      Bytes flipped = files.container[1];
      flipped[at] ^= std::byte{1};
      EXPECT_FALSE(as_recorded(1, flipped)) << at;
      EXPECT_FALSE(as_recorded(2, flipped)) << at;
    }
  }
}

TEST(Stripes, AllChainsPassTheMembersInOneOrder) {
  const SetShape set{Scheme::rs, std::vector<std::uint64_t>(7, 9000), 2};
  for (const Stripe& stripe : decode_stripes(set, presence(7, 0b0010010, 0b0010010))) {
    EXPECT_TRUE(std::ranges::is_sorted(stripe.inputs, {}, &StripeInput::member))
        << "a member that is first in one and last in another makes each step wait for the one before";
  }
}

TEST(Stripes, GoStraightToTheirTargetsUnlessFewWouldGetMuch) {
  const auto route = [](const SetShape& set, std::uint32_t lost) {
    return route_for(decode_stripes(set, presence(set.sizes.size(), lost, lost)));
  };
  const std::vector<std::uint64_t> sizes(6, 9000);
  const SetShape xor4{Scheme::xor_, {9000, 9000, 9000, 9000}};
  const SetShape rs4{Scheme::rs, {9000, 9000, 9000, 9000}, 2};
  for (const SetShape& set : {xor4, rs4, SetShape{Scheme::partner, sizes}, SetShape{Scheme::rs, sizes, 4}}) {
    EXPECT_EQ(route_for(encode_stripes(set)), Route::direct);
  }
  EXPECT_EQ(route(xor4, 0b0010), Route::chain);
  EXPECT_EQ(route(rs4, 0b0010), Route::chain);
  EXPECT_EQ(route(rs4, 0b0110), Route::direct) << "two inputs for each of two";
  EXPECT_EQ(route({Scheme::rs, sizes, 2}, 0b000011), Route::chain);
  EXPECT_EQ(route({Scheme::partner, sizes}, 0b000001), Route::direct);
  EXPECT_EQ(route_for({}), Route::direct);
}

TEST(Stripes, GoStraightToTheirTargetsWhereAProcessHasSeveralMembers) {
  const SetShape set{Scheme::xor_, {9000, 9000, 9000, 9000}};
  const auto stripes = decode_stripes(set, presence(4, 0b0010, 0b0010));
  EXPECT_EQ(route_for(stripes, std::vector{3, 1, 0, 2}), Route::chain);
  EXPECT_EQ(route_for(stripes, std::vector{0, 1, 0, 2}), Route::direct) << "a chain would wait for itself";
}

TEST(Stripes, RefuseWhatIsNoSet) {
  EXPECT_THROW(static_cast<void>(encode_stripes({Scheme::xor_, {100}})), Error);
  EXPECT_THROW(static_cast<void>(encode_stripes({Scheme::single, {100, 100}})), Error);
  EXPECT_THROW(static_cast<void>(encode_stripes({Scheme::rs, {100, 100}, 2})), Error);
  EXPECT_THROW(static_cast<void>(decode_stripes({Scheme::rs, {100, 100}, 2}, presence(2, 0, 0))), Error);
  EXPECT_TRUE(can_decode(Scheme::single, 1, presence(2, 0, 3)));
  EXPECT_FALSE(can_decode(Scheme::single, 1, presence(2, 2, 0)));
}

TEST(Pieces, StayWithinTheBudgetAndTheirLimits) {
  for (const std::uint32_t depth : {1U, 4U, 6U}) {
    for (std::uint64_t buffers = 1; buffers <= 32; ++buffers) {
      const std::uint64_t bytes = piece_bytes(buffers, {0, depth});
      EXPECT_LE((depth * buffers + 2) * bytes, kExchangeBufferBytes);
      EXPECT_GE(bytes, kPieceBytesMin);
      EXPECT_LE(bytes, kPieceBytesMax);
      EXPECT_EQ(bytes % 4096, 0U);
    }
  }
  EXPECT_EQ(piece_bytes(1, {}), kPieceBytesMax);
  EXPECT_EQ(piece_bytes(10'000, {}), kPieceBytesMin);
  EXPECT_EQ(piece_bytes(10, {4097, 4}), 4097U) << "as the user wants it";
  EXPECT_LE(piece_bytes(31, {16U << 20U, 64}) * (64 * 31 + 2), std::uint64_t{1} << 30U) << "within reason";
  EXPECT_GE(piece_bytes(31, {16U << 20U, 64}), 4096U);
}

TEST(Pieces, CoverTheWhole) {
  EXPECT_EQ(piece_of(0, 100, 0).length, 0U);
  EXPECT_EQ(piece_of(0, 100, 100).length, 100U);
  EXPECT_EQ(piece_of(1, 100, 100).length, 0U);
  EXPECT_EQ(piece_of(1, 100, 101).begin, 100U);
  EXPECT_EQ(piece_of(1, 100, 101).length, 1U);
}

}  // namespace
}  // namespace kedge::redundancy::stripes_test
