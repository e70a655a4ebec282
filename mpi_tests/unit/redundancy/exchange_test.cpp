// The exchange of a redundancy set: as many members as may be lost are rebuilt, with messages of any size and number,
// and empty containers cost no message.
#include <gtest/gtest.h>

#include <tuple>

#include "base/text.hpp"
#include "unit/redundancy/exchange_fixture.hpp"

namespace kedge::redundancy::exchange_test {
namespace {

struct Case {
  Scheme scheme;
  std::uint32_t parities;
  std::size_t members;
};
using Way = std::tuple<Case, bool, Route>;

class ExchangeOf : public Exchange, public testing::WithParamInterface<Way> {};

TEST_P(ExchangeOf, ProtectsAndRebuildsAsManyMembersAsMayBeLost) {
  const auto& [shape, mapped, route] = GetParam();
  const SetShape set = uneven(shape.scheme, shape.members, shape.parities);
  place_ranks(set);
  run_well({set, encode_stripes(set), mapped, {}, route});
  check_all_files(set);
  for (std::uint32_t lost = 0; lost < shape.members; ++lost) {
    PresentFiles present{std::vector<bool>(shape.members, true), std::vector<bool>(shape.members, true)};
    for (std::uint32_t i = 0; i < shape.parities; ++i) {
      const auto member = static_cast<std::uint32_t>((lost + i) % shape.members);
      present.container[member] = present.parity[member] = false;
      spoil(set, member, MemberPart::container);
      spoil(set, member, MemberPart::parity);
    }
    run_well({set, decode_stripes(set, present), mapped, {}, route});
    check_all_files(set);
  }
}

std::string name_of(const testing::TestParamInfo<Way>& info) {
  const auto& [shape, mapped, route] = info.param;
  return compose("{}{}of{}{}{}", to_string(shape.scheme), shape.parities, shape.members, mapped ? "Mapped" : "Read",
                 route == Route::chain ? "Chain" : "Direct");
}

INSTANTIATE_TEST_SUITE_P(
    All, ExchangeOf,
    testing::Combine(testing::Values(Case{Scheme::partner, 1, 2}, Case{Scheme::partner, 1, 3},
                                     Case{Scheme::partner, 1, 5}, Case{Scheme::xor_, 1, 2}, Case{Scheme::xor_, 1, 3},
                                     Case{Scheme::xor_, 1, 4}, Case{Scheme::xor_, 1, 5}, Case{Scheme::rs, 2, 3},
                                     Case{Scheme::rs, 2, 4}, Case{Scheme::rs, 2, 5}, Case{Scheme::rs, 3, 4},
                                     Case{Scheme::rs, 3, 5}, Case{Scheme::rs, 4, 5}),
                     testing::Bool(), testing::Values(Route::direct, Route::chain)),
    name_of);

TEST_F(Exchange, PiecesAndDepthsOfAnySizeGiveTheSameBytes) {
  const SetShape set{Scheme::rs, {70'001, 4096, 0, 123'457}, 2};
  PresentFiles present{std::vector<bool>(4, true), std::vector<bool>(4, true)};
  present.container[0] = present.parity[0] = present.container[3] = present.parity[3] = false;
  for (const std::uint64_t bytes : {4096U, 4097U, 5000U, 65'537U, 1U << 20U}) {
    for (const std::uint32_t depth : {1U, 2U, 7U, 64U}) {
      for (const Route route : {Route::direct, Route::chain}) {
        place_ranks(set);
        run_well({set, encode_stripes(set), true, {}, route, {bytes, depth}});
        check_all_files(set);
        for (const std::uint32_t lost : {0U, 3U}) {
          spoil(set, lost, MemberPart::container);
          spoil(set, lost, MemberPart::parity);
        }
        run_well({set, decode_stripes(set, present), false, {}, route, {bytes, depth}});
        check_all_files(set);
      }
    }
  }
}

/// Stripes that no scheme has: the naive execution says what must come out of them.
class ExchangeOfOddStripes : public Exchange {
 protected:
  void run_and_check(const SetShape& set, const std::vector<Stripe>& stripes) {
    for (const bool mapped : {false, true}) {
      for (const Route route : {Route::direct, Route::chain}) {
        place_ranks(set);
        for (auto& parity : expected.parity) std::ranges::fill(parity, std::byte{0x55});  // as on the disk
        execute(expected, stripes);
        run_well({set, stripes, mapped, {}, route});
        check_all_files(set);
      }
    }
  }
};

TEST_F(ExchangeOfOddStripes, ATargetMayBeAnInputOfItself) {
  run_and_check(
      {Scheme::partner, {2 * kMiB + 5, 3 * kMiB, 100}},
      {{0, MemberPart::parity, 0, 100, {{0, MemberPart::container, 9, 100}, {2, MemberPart::container, 0, 50}}},
       {1,
        MemberPart::parity,
        7,
        2 * kMiB - 7,
        {{1, MemberPart::container, 3, kMiB}, {0, MemberPart::container, 1, 2 * kMiB - 7}}}});
}

TEST_F(ExchangeOfOddStripes, InputsOfAnyLengthTimesAnyNumberAddUp) {
  run_and_check({Scheme::partner, {2 * kMiB + 5, 3 * kMiB, 3 * kMiB, 100}},
                {{0,
                  MemberPart::parity,
                  0,
                  100,
                  {{3, MemberPart::container, 0, 3, 7},
                   {1, MemberPart::container, 0, 50, 255},
                   {2, MemberPart::container, 5, 100, 1}}},
                 {3,
                  MemberPart::parity,
                  0,
                  3 * kMiB,
                  {{1, MemberPart::container, 0, 3 * kMiB, 3},
                   {0, MemberPart::container, 5, kMiB, 2},
                   {3, MemberPart::container, 0, 9}}},
                 {2, MemberPart::parity, 0, kMiB + 1, {{1, MemberPart::container, 4, 17, 9}}}});
}

TEST_F(Exchange, PositionsAreNotRanks) {
  const SetShape set = uneven(Scheme::xor_, 4);
  place_ranks(set);
  run_well({set, encode_stripes(set), true, {2, 0, 3, 1}});
  check_all_files(set);
}

TEST_F(Exchange, OneProcessMayHaveSeveralMembers) {
  const std::vector<std::vector<int>> layouts = {{0, 0, 0, 0, 0}, {0, 1, 0, 1, 0}, {1, 1, 0, 2, 2}, {0, 1, 2, 3, 0}};
  for (const auto& [scheme, parities] : {std::pair{Scheme::partner, 1U}, {Scheme::xor_, 1U}, {Scheme::rs, 3U}}) {
    const SetShape set = uneven(scheme, 5, parities);
    for (const auto& ranks : layouts) {
      for (const bool mapped : {false, true}) {
        place_ranks(set);
        run_well({set, encode_stripes(set), mapped, ranks});
        check_all_files(set);
        PresentFiles present{std::vector<bool>(5, true), std::vector<bool>(5, true)};
        for (std::uint32_t i = 0; i < parities; ++i) {
          const std::uint32_t member = (3 + i) % 5;
          present.container[member] = present.parity[member] = false;
          spoil(set, member, MemberPart::container);
          spoil(set, member, MemberPart::parity);
        }
        run_well({set, decode_stripes(set, present), mapped, ranks});
        check_all_files(set);
      }
    }
  }
}

TEST_F(Exchange, MembersOfOneProcessSendEachOtherNoMessage) {
  const SetShape set = uneven(Scheme::xor_, 4);
  place_ranks(set);
  run_well({set, encode_stripes(set), true, {0, 0, 0, 0}});
  check_all_files(set);
  for (const auto& result : results) EXPECT_EQ(result.sent_bytes, 0U);
}

TEST_F(Exchange, AFailureOfOneMemberIsReportedByItsProcess) {
  const SetShape set = uneven(Scheme::xor_, 4);
  place_ranks(set);
  before_exchange = [](std::uint32_t member, OpenFiles& files) {
    if (member == 2) files.container.reset();
  };
  testing::InProcessWorld world(2);
  for (const auto& outcome : run({set, encode_stripes(set), false, {0, 1, 1, 0}}, world)) {
    EXPECT_TRUE(outcome.returned());
  }
  EXPECT_FALSE(results[0].failure.has_value());
  EXPECT_FALSE(results[3].failure.has_value());
  for (const std::size_t member : {1U, 2U}) {
    ASSERT_TRUE(results[member].failure.has_value()) << member;
    EXPECT_EQ(results[member].failure->code, ErrorCode::io);
  }
}

TEST_F(Exchange, EmptyContainersNeedNoMessage) {
  for (const Scheme scheme : {Scheme::partner, Scheme::xor_}) {
    const SetShape set{scheme, {0, 0, 0}};
    place_ranks(set);
    run_well({set, encode_stripes(set), true});
    for (const auto& result : results) EXPECT_EQ(result.sent_bytes, 0U);
  }
}

TEST_F(Exchange, CountsWhatItSends) {
  const SetShape set = uneven(Scheme::xor_, 4);
  place_ranks(set);
  run_well({set, encode_stripes(set), false});
  for (std::uint32_t member = 0; member < 4; ++member) EXPECT_EQ(results[member].sent_bytes, set.sizes[member]);
}

}  // namespace
}  // namespace kedge::redundancy::exchange_test
