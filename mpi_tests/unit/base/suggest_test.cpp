// The nearest of the known words to one that is unknown, and what a process's own environment gives.
#include "base/suggest.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>

#include "kedge/options.hpp"

namespace kedge::suggest_test {
namespace {

TEST(Suggest, FindsTheNearestWordOrNone) {
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3U);
  EXPECT_EQ(edit_distance("", "abc"), 3U);
  EXPECT_EQ(nearest_name("shwo", {"verify", "show"}), "show");
  EXPECT_EQ(nearest_name("banana", {"verify", "show"}), std::nullopt);
  EXPECT_EQ(nearest_name("STORE_QUOTA", {"STORE_PATH", "STORE_QUOTA_BYTES_MAX", "STORE_QUOTA_BYTES"}),
            "STORE_QUOTA_BYTES");
  EXPECT_EQ(nearest_name("s", {"verify", "show"}), std::nullopt) << "one letter says too little";
}

TEST(OptionsLoad, ReadsThisProcess) {
  ASSERT_EQ(::setenv("KEDGE_RUN", "from-environment", 1), 0);
  const Options good = Options::load();
  ASSERT_EQ(::setenv("KEDGE_RUN", "no good", 1), 0);
  const Options bad = Options::load();
  ::unsetenv("KEDGE_RUN");
  EXPECT_EQ(good.run, "from-environment");
  EXPECT_TRUE(bad.load_failure.has_value());
}

}  // namespace
}  // namespace kedge::suggest_test
