// Which commits stay in a store: in every history the newest of each level, and no more files than are allowed.
#include "commits/retention.hpp"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "base/text.hpp"

namespace kedge::commits::retention_test {
namespace {

constexpr Level kLocal = Level::local;
constexpr Level kProtected = Level::protected_;

using Levels = std::vector<Level>;
using Stays = std::vector<bool>;

TEST(Retention, NothingIsKeptOfNothing) { EXPECT_EQ(select_by_level(Levels{}, 1), Stays{}); }

TEST(Retention, TheNewestStay) {
  EXPECT_EQ(select_by_level(Levels{kLocal, kLocal, kLocal}, 1), (Stays{true, false, false}));
  EXPECT_EQ(select_by_level(Levels{kLocal, kLocal, kLocal}, 2), (Stays{true, true, false}));
  EXPECT_EQ(select_by_level(Levels{kProtected, kProtected}, 5), (Stays{true, true}));
}

TEST(Retention, TheNewestProtectedOneStaysBesideNewerUnprotectedOnes) {
  EXPECT_EQ(select_by_level(Levels{kLocal, kProtected, kProtected}, 1), (Stays{true, true, false}));
  EXPECT_EQ(select_by_level(Levels{kLocal, kLocal, kProtected, kLocal}, 1), (Stays{true, false, true, false}));
  EXPECT_EQ(select_by_level(Levels{kLocal, kLocal, kProtected, kProtected}, 2), (Stays{true, true, true, false}));
}

TEST(Retention, AProtectedOneSupersedesAllBefore) {
  EXPECT_EQ(select_by_level(Levels{kProtected, kLocal, kProtected}, 1), (Stays{true, false, false}));
  EXPECT_EQ(select_by_level(Levels{kLocal, kProtected, kLocal, kProtected}, 1), (Stays{true, true, false, false}));
}

TEST(Retention, EveryHistoryKeepsTheNewestOfEachLevelAndNoMoreThanTheInvariantAllows) {
  constexpr std::array kLevels = {Level::local, Level::protected_, Level::persistent};
  for (std::uint32_t length = 1; length <= 6; ++length) {
    std::uint32_t histories = 1;
    for (std::uint32_t i = 0; i < length; ++i) histories *= 3;
    for (std::uint32_t history = 0; history < histories; ++history) {
      Levels levels;
      for (std::uint32_t rest = history, i = 0; i < length; ++i, rest /= 3) levels.push_back(kLevels[rest % 3]);
      for (std::uint32_t keep = 1; keep <= 3; ++keep) {
        SCOPED_TRACE(compose("history {} of {}, keep {}", history, length, keep));
        const Stays stays = select_by_level(levels, keep);
        ASSERT_EQ(stays.size(), levels.size());
        std::uint32_t beyond = 0;
        for (std::uint32_t i = 0; i < length; ++i) {
          // An older one goes only when a newer one has reached its level; else it must stay.
          bool superseded = false;
          for (std::uint32_t newer = 0; newer < i; ++newer) superseded = superseded || levels[newer] >= levels[i];
          EXPECT_EQ(stays[i], i < keep || !superseded);
          beyond += stays[i] && i >= keep ? 1U : 0U;
        }
        EXPECT_LE(beyond, 2U);  // one for each higher level
      }
    }
  }
}

}  // namespace
}  // namespace kedge::commits::retention_test
