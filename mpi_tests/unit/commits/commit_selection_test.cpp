// What the texts mean by which programs and people ask for a checkpoint, the word "latest" among them.
#include "commits/commit_selection.hpp"

#include <gtest/gtest.h>

namespace kedge::commits {
namespace {

TEST(Selection, TheWordLatestNamesEveryCheckpointAndNoOutput) {
  EXPECT_TRUE(matches_tag("latest", "a", false));
  EXPECT_FALSE(matches_tag("latest", "a", true));
}

TEST(Selection, ATagNamesItsCommitsAloneAndOutputsToo) {
  EXPECT_TRUE(matches_tag("a", "a", false));
  EXPECT_TRUE(matches_tag("a", "a", true));
  EXPECT_FALSE(matches_tag("a", "b", false));
  EXPECT_FALSE(matches_tag("latest.1", "a", false));
}

TEST(Selection, OnlyATagIsParsed) {
  EXPECT_TRUE(std::holds_alternative<Latest>(parse_selection(Tag("latest"))));
  EXPECT_EQ(std::get<Tag>(parse_selection(Tag("a"))), "a");
  EXPECT_EQ(std::get<Before>(parse_selection(Before{"latest"})).tag, "latest");
  EXPECT_EQ(std::get<Source>(parse_selection(Source{"/prefix"})).tag, "latest");
}

TEST(Selection, TheWordIsNoTagOfACommit) {
  EXPECT_TRUE(check_tag("latest"));
  EXPECT_TRUE(check_selection(Before{"latest"}));
  EXPECT_FALSE(check_selection(Source{"/prefix", "", "latest"}));
  EXPECT_FALSE(check_selection(latest));
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
