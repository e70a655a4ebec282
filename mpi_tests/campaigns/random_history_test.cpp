// Random histories of starts, losses, damage, moves and changed options: what can be recovered is opened, byte for
// byte, the same on every rank.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "harness/random_history.hpp"
#include "harness/seeds.hpp"

namespace kedge::faults::random_history_test {
namespace {

class RandomHistories : public testing::TestWithParam<Corruption> {};

INSTANTIATE_TEST_SUITE_P(Faults, RandomHistories,
                         testing::Values(Corruption::between_starts, Corruption::while_it_runs,
                                         Corruption::behind_checks),
                         [](const auto& one) {
                           std::string name = testing::PrintToString(one.param);
                           std::ranges::replace(name, ' ', '_');
                           return name;
                         });

TEST_P(RandomHistories, WhatIsRecoverableIsOpenedByteForByte) {
  for_each_seed({.normal = 18, .full = 600}, "campaigns", [](std::uint64_t seed) {
    RandomHistory history(seed, GetParam());
    history.run();
    if (HasFailure()) ADD_FAILURE() << history.story();
  });
}

}  // namespace
}  // namespace kedge::faults::random_history_test
