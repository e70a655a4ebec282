// What the texts mean by which programs and people ask for a checkpoint, the word "latest" among them.
#include "commits/selection.hpp"

#include <gtest/gtest.h>

namespace kedge::commits {
namespace {

TEST(Selection, TheWordLatestNamesEveryCheckpointAndNoOutput) {
  EXPECT_TRUE(is_named("latest", "a", false));
  EXPECT_FALSE(is_named("latest", "a", true));
}

TEST(Selection, ATagNamesItsCommitsAloneAndOutputsToo) {
  EXPECT_TRUE(is_named("a", "a", false));
  EXPECT_TRUE(is_named("a", "a", true));
  EXPECT_FALSE(is_named("a", "b", false));
  EXPECT_FALSE(is_named("latest.1", "a", false));
}

TEST(Selection, OnlyATagIsParsed) {
  EXPECT_TRUE(std::holds_alternative<Latest>(parsed(Tag("latest"))));
  EXPECT_EQ(std::get<Tag>(parsed(Tag("a"))), "a");
  EXPECT_EQ(std::get<Before>(parsed(Before{"latest"})).tag, "latest");
  EXPECT_EQ(std::get<Source>(parsed(Source{"/prefix"})).tag, "latest");
}

TEST(Selection, TheWordIsNoTagOfACommit) {
  EXPECT_TRUE(check_tag("latest"));
  EXPECT_TRUE(check(Before{"latest"}));
  EXPECT_FALSE(check(Source{"/prefix", "", "latest"}));
  EXPECT_FALSE(check(latest));
}

TEST(Selection, IsWrittenAsItWasGiven) {
  for (const Selection& selection : {Selection(latest), Selection(Tag("latest"))}) {
    EXPECT_EQ(to_string(selection), "latest");
  }
  EXPECT_EQ(to_string(Before{"a"}), "before a");
  EXPECT_EQ(to_string(Source{"/prefix", "", "a"}), "a of /prefix");
}

}  // namespace
}  // namespace kedge::commits
