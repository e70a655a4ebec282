// Campaigns whose rounds are drawn from seeds.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <functional>
#include <optional>
#include <string_view>

#include "harness/full_test.hpp"
#include "harness/history.hpp"

namespace kedge::faults {

/// Seeds 1 to `normal`, or to `full` with KEDGE_TEST_FULL; with KEDGE_TEST_SEED=N seed N alone.
struct Seeds {
  std::uint64_t normal = 0;
  std::uint64_t full = 0;
  /// The one seed that was asked for.
  [[nodiscard]] static std::optional<std::uint64_t> alone() {
    const char* seed = std::getenv("KEDGE_TEST_SEED");
    return seed == nullptr ? std::nullopt : std::optional<std::uint64_t>(std::strtoull(seed, nullptr, 10));
  }
};

/// Stops at the first round that fails the test, and says how to run that again.
inline void for_each_seed(const Seeds& seeds, std::string_view program,
                          const std::function<void(std::uint64_t seed)>& round) {
  const auto alone = Seeds::alone();
  const std::uint64_t last = full_test() ? seeds.full : seeds.normal;
  for (std::uint64_t seed = alone.value_or(1); seed <= alone.value_or(last); ++seed) {
    round(seed);
    if (!testing::Test::HasFailure()) continue;
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    ADD_FAILURE() << "again: KEDGE_TEST_SEED=" << seed << " " << program
                  << " --gtest_filter=" << test->test_suite_name() << "." << test->name();
    return;
  }
}

}  // namespace kedge::faults
