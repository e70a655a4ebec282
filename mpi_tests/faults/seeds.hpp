// Campaigns whose rounds are drawn from seeds.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <functional>
#include <string_view>

#include "faults/history.hpp"

namespace kedge::faults {

/// Seeds 1 to `normal`, or to `full` with KEDGE_TEST_FULL; with KEDGE_TEST_SEED=N seed N alone.
struct Seeds {
  std::uint64_t normal = 0;
  std::uint64_t full = 0;
  [[nodiscard]] static bool alone() { return std::getenv("KEDGE_TEST_SEED") != nullptr; }
};

/// Stops at the first round that fails the test, and says how to run that again.
inline void for_each_seed(const Seeds& seeds, std::string_view program,
                          const std::function<void(std::uint64_t seed)>& round) {
  const std::uint64_t first = Seeds::alone() ? std::strtoull(std::getenv("KEDGE_TEST_SEED"), nullptr, 10) : 1;
  const std::uint64_t last = Seeds::alone() ? first : full_test() ? seeds.full : seeds.normal;
  for (std::uint64_t seed = first; seed <= last; ++seed) {
    round(seed);
    if (!testing::Test::HasFailure()) continue;
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    ADD_FAILURE() << "again: KEDGE_TEST_SEED=" << seed << " " << program
                  << " --gtest_filter=" << test->test_suite_name() << "." << test->name();
    return;
  }
}

}  // namespace kedge::faults
