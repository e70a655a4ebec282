// Which candidate an application gets for what it asked: the newest, a tag, before a tag, nothing.
#include "recovery/choose_commit.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kedge::recovery::selection_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr bool kCommitsExist = true;
constexpr std::uint32_t kProcesses = 4;

Candidate candidate(std::uint64_t generation, Tag tag, bool recoverable, std::string reason = "it is lost") {
  Candidate one;
  one.commit.generation = generation;
  one.commit.world_size = kProcesses;
  one.commit.tag = std::move(tag);
  one.recoverable = recoverable;
  if (!recoverable) one.reason = std::move(reason);
  return one;
}

/// Newest first, as surveys are.
Survey survey_of(std::vector<Candidate> candidates, std::string unreadable = {}) {
  return {kProcesses, std::move(candidates), std::move(unreadable)};
}

const Survey kHistory = survey_of({candidate(9, "best", false), candidate(8, "c", true), candidate(7, "best", true),
                                   candidate(6, "b", false), candidate(5, "best", true), candidate(4, "a", true)});

TEST(Selection, AContainerWithAParentOrOfAnotherRankCountTellsOfCommitsWithoutTheRecord) {
  const auto first = candidate(1, "a", false);
  EXPECT_THAT(choose(survey_of({first}), latest, !kCommitsExist).lost, IsEmpty()) << "a first checkpoint cut short";
  auto later = first;
  later.commit.parent_id.bytes[0] = 1;
  EXPECT_THAT(choose(survey_of({later}), latest, !kCommitsExist).lost, HasSubstr("it is lost"));
  auto of_more_ranks = first;
  of_more_ranks.commit.world_size = kProcesses + 1;
  EXPECT_THAT(choose(survey_of({of_more_ranks}), latest, !kCommitsExist).lost, HasSubstr("it is lost"));
}

TEST(Selection, LatestIsTheNewestRecoverableAndNamesWhatItSkipped) {
  const Choice choice = choose(kHistory, latest, kCommitsExist);
  EXPECT_EQ(choice.chosen, 1U);
  EXPECT_THAT(choice.skipped, ElementsAre(0U));
  EXPECT_THAT(choice.lost, IsEmpty());
}

TEST(Selection, ATagIsTheNewestRecoverableOfThatName) {
  const Choice choice = choose(kHistory, Tag{"best"}, kCommitsExist);
  EXPECT_EQ(choice.chosen, 2U);
  EXPECT_THAT(choice.skipped, ElementsAre(0U));
}

TEST(Selection, BeforeIsOlderThanEveryCommitOfThatTag) {
  EXPECT_EQ(choose(kHistory, Before{"best"}, kCommitsExist).chosen, 5U);
  EXPECT_EQ(choose(kHistory, Before{"c"}, kCommitsExist).chosen, 2U);
  const Choice over_a_lost_one = choose(kHistory, Before{"best"}, kCommitsExist);
  EXPECT_THAT(over_a_lost_one.skipped, IsEmpty());
  EXPECT_THAT(choose(survey_of({candidate(3, "c", true), candidate(2, "b", false), candidate(1, "a", true)}),
                     Before{"c"}, kCommitsExist)
                  .skipped,
              ElementsAre(1U));
}

TEST(Selection, NamesThatNobodyUsedAreNothingAndNoError) {
  for (const Selection& selection : {Selection{Tag{"x"}}, Selection{Before{"x"}}, Selection{Before{"a"}}}) {
    const Choice choice = choose(kHistory, selection, kCommitsExist);
    EXPECT_FALSE(choice.chosen);
    EXPECT_THAT(choice.lost, IsEmpty());
  }
}

TEST(Selection, WithoutCommitsAndCandidatesThereIsNothing) {
  const Choice choice = choose(survey_of({}), latest, false);
  EXPECT_FALSE(choice.chosen);
  EXPECT_THAT(choice.lost, IsEmpty());
}

TEST(Selection, PiecesOfAFirstCheckpointThatNeverReturnedAreNothing) {
  const Choice choice = choose(survey_of({candidate(1, "a", false)}, "a torn file"), latest, false);
  EXPECT_FALSE(choice.chosen);
  EXPECT_THAT(choice.skipped, ElementsAre(0U));
  EXPECT_THAT(choice.lost, IsEmpty());
}

TEST(Selection, CommitsThatExistedAndLeftNothingAreLost) {
  const Choice choice = choose(survey_of({}), latest, kCommitsExist);
  EXPECT_THAT(choice.lost, HasSubstr("no container of them is on the prefix"));
  EXPECT_FALSE(choice.other_ranks) << "nobody knows how many ranks saved them";
}

TEST(Selection, EveryLostCandidateIsListedWithItsReason) {
  const Choice choice = choose(survey_of({candidate(3, "c", false, "why c"), candidate(2, "b", false, "why b"),
                                          candidate(1, "a", false, "why a")},
                                         "a torn file"),
                               latest, kCommitsExist);
  EXPECT_FALSE(choice.chosen);
  EXPECT_EQ(choice.lost, "c (generation 3): why c; b (generation 2): why b; a (generation 1): why a; a torn file");
}

TEST(Selection, ATagOfWhichOnlyLostOnesAreKnownIsLost) {
  EXPECT_EQ(choose(kHistory, Tag{"b"}, kCommitsExist).lost, "b (generation 6): it is lost");
}

TEST(Selection, WhatWasDiscardedIsNotLostUnlessNothingIsLeft) {
  auto given_up = candidate(3, "b", false, "it was discarded");
  given_up.discarded = true;
  const Survey survey = survey_of({given_up, candidate(2, "a", true)});
  EXPECT_THAT(choose(survey, Tag{"b"}, kCommitsExist).lost, IsEmpty());
  EXPECT_THAT(choose(survey_of({given_up}), latest, kCommitsExist).lost, HasSubstr("it was discarded"));
  const Survey with_lost = survey_of({given_up, candidate(2, "b", false)});
  EXPECT_THAT(choose(with_lost, Tag{"b"}, kCommitsExist).lost, HasSubstr("it is lost"));
}

TEST(Selection, CandidatesOfOneGenerationKeepTheSurveysOrder) {
  const Choice choice = choose(survey_of({candidate(2, "a", false), candidate(2, "a", true), candidate(2, "a", true)}),
                               latest, kCommitsExist);
  EXPECT_EQ(choice.chosen, 1U);
}

}  // namespace
}  // namespace kedge::recovery::selection_test
