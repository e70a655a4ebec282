// Random histories of starts, losses, damage, moves and changed options: what can be had is opened, byte for byte, the
// same on every rank. KEDGE_TEST_SEED=N: history N alone; KEDGE_TEST_FULL=1: many more.
#include "faults/random_history.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "faults/history.hpp"

namespace kedge::faults {
namespace {

class RandomHistories : public testing::TestWithParam<Harm> {};

INSTANTIATE_TEST_SUITE_P(Faults, RandomHistories,
                         testing::Values(Harm::between_starts, Harm::while_it_runs, Harm::behind_checks),
                         [](const auto& one) {
                           std::string name = testing::PrintToString(one.param);
                           std::ranges::replace(name, ' ', '_');
                           return name;
                         });

TEST_P(RandomHistories, R31_R32_WhatCanBeHadIsOpenedByteForByte) {
  const char* alone = std::getenv("KEDGE_TEST_SEED");
  const std::uint64_t first = alone == nullptr ? 1 : std::strtoull(alone, nullptr, 10);
  const std::uint64_t count = alone != nullptr ? 1 : full_test() ? 600 : 24;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    RandomHistory history(seed, GetParam());
    history.run();
    if (HasFailure()) {
      const auto* test = testing::UnitTest::GetInstance()->current_test_info();
      FAIL() << "again: KEDGE_TEST_SEED=" << seed << " faults_random_history --gtest_filter=" << test->test_suite_name()
             << "." << test->name() << "\n"
             << history.story();
    }
  }
}

}  // namespace
}  // namespace kedge::faults
