#include <gtest/gtest.h>

#include <tuple>

#include "unit/redundancy_fixture.hpp"

namespace kedge::redundancy {
namespace {

class ExchangeOf : public Exchange, public testing::WithParamInterface<std::tuple<Scheme, int, bool>> {};

TEST_P(ExchangeOf, ProtectsAndRebuildsEachMemberInTurn) {
  const auto& [scheme, members, mapped] = GetParam();
  const SetShape set = uneven(scheme, static_cast<std::size_t>(members));
  lay_out(set);
  run_well({set, encode_stripes(set), mapped});
  check_all_files(set);
  for (std::uint32_t lost = 0; lost < set.sizes.size(); ++lost) {
    Presence present{std::vector<bool>(set.sizes.size(), true), std::vector<bool>(set.sizes.size(), true)};
    present.container[lost] = present.parity[lost] = false;
    spoil(set, lost, Part::container);
    spoil(set, lost, Part::parity);
    run_well({set, decode_stripes(set, present), mapped});
    check_all_files(set);
  }
}

std::string name_of(const std::tuple<Scheme, int, bool>& values) {
  const auto& [scheme, members, mapped] = values;
  return std::string(scheme == Scheme::xor_ ? "Xor" : "Partner") + std::to_string(members) +
         (mapped ? "Mapped" : "Read");
}

INSTANTIATE_TEST_SUITE_P(All, ExchangeOf,
                         testing::Combine(testing::Values(Scheme::partner, Scheme::xor_), testing::Values(2, 3, 4, 5),
                                          testing::Bool()),
                         [](const auto& test) { return name_of(test.param); });

/// Stripes that no scheme has: the naive execution says what must come out of them.
class ExchangeOfOddStripes : public Exchange {
 protected:
  void run_and_check(const SetShape& set, const std::vector<Stripe>& stripes) {
    for (const bool mapped : {false, true}) {
      lay_out(set);
      for (auto& parity : expected.parity) std::ranges::fill(parity, std::byte{0x55});  // as on the disk
      execute(expected, stripes);
      run_well({set, stripes, mapped});
      check_all_files(set);
    }
  }
};

TEST_F(ExchangeOfOddStripes, ATargetMayBeAnInputOfItself) {
  run_and_check(
      {Scheme::partner, {2 * kMiB + 5, 3 * kMiB, 100}},
      {{0, Part::parity, 0, 100, {{0, Part::container, 9, 100}, {2, Part::container, 0, 50}}},
       {1, Part::parity, 7, 2 * kMiB - 7, {{1, Part::container, 3, kMiB}, {0, Part::container, 1, 2 * kMiB - 7}}}});
}

TEST_F(ExchangeOfOddStripes, ARebuiltContainerMayBeAnInputOfALaterStripe) {
  run_and_check(
      {Scheme::partner, {2 * kMiB + 5, 3 * kMiB, 3 * kMiB}},
      {{0, Part::container, 0, 2 * kMiB + 5, {{1, Part::container, 0, kMiB + 3}, {2, Part::container, 5, 2 * kMiB}}},
       {1, Part::parity, 0, 2 * kMiB + 5, {{0, Part::container, 0, 2 * kMiB + 5}}},
       {2, Part::parity, 0, kMiB, {{1, Part::parity, 5, kMiB}, {0, Part::container, 0, 7}}}});
}

TEST_F(Exchange, PositionsAreNotRanks) {
  const SetShape set = uneven(Scheme::xor_, 4);
  lay_out(set);
  run_well({set, encode_stripes(set), true, {2, 0, 3, 1}});
  check_all_files(set);
}

TEST_F(Exchange, EmptyContainersNeedNoMessage) {
  for (const Scheme scheme : {Scheme::partner, Scheme::xor_}) {
    const SetShape set{scheme, {0, 0, 0}};
    lay_out(set);
    run_well({set, encode_stripes(set), true});
    for (const auto& result : results) EXPECT_EQ(result.sent_bytes, 0U);
  }
}

TEST_F(Exchange, CountsWhatItSends) {
  const SetShape set = uneven(Scheme::xor_, 4);
  lay_out(set);
  run_well({set, encode_stripes(set), false});
  for (std::uint32_t member = 0; member < 4; ++member) EXPECT_EQ(results[member].sent_bytes, set.sizes[member]);
}

}  // namespace
}  // namespace kedge::redundancy
