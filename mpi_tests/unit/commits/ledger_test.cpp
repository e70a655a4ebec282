// Transitions of the ledger of commits, and what each of them must not change; nothing is retired for a commit that is
// unproven, and a snapshot becomes a commit when it is sealed.
#include "commits/ledger.hpp"

#include "commits/head_check.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/invariant.hpp"
#include "kedge/error.hpp"

namespace kedge::commits::ledger_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Id128 id(std::uint8_t number) {
  Id128 id;
  id.bytes[0] = number;
  return id;
}

CommitHead head(std::uint8_t number, std::uint64_t generation, const Id128& parent = {}) {
  CommitHead head;
  head.id = id(number);
  head.parent_id = parent;
  head.generation = generation;
  head.tag = "step-" + std::to_string(number);
  return head;
}

std::vector<std::uint64_t> generations(const Ledger& ledger) {
  std::vector<std::uint64_t> generations;
  for (const CommitEntry& entry : ledger.known().entries) generations.push_back(entry.commit.generation);
  return generations;
}

class LedgerTest : public ::testing::Test {
 protected:
  /// As an engine does it.
  CommitHead commit(std::uint8_t number) {
    if (!ledger_.known().is_surveyed()) ledger_.apply_survey({});
    CommitHead made = head(number, ledger_.generations().take_next(), ledger_.known().parent_id);
    ledger_.add_commit(made);
    return made;
  }

  Ledger ledger_;
};

TEST_F(LedgerTest, ASnapshotIsNoEntryUntilItIsSealed) {
  const CommitHead before = commit(1);
  CommitHead next = head(2, ledger_.generations().take_next(), ledger_.known().parent_id);
  ledger_.add_snapshot(next);
  EXPECT_EQ(ledger_.known().level("step-2"), Level::snapshot);
  EXPECT_EQ(ledger_.known().find_newest("step-2")->id, next.id);
  EXPECT_EQ(ledger_.known().newest_checkpoint()->commit.id, before.id);
  EXPECT_EQ(ledger_.known().parent_id, before.id);
  EXPECT_FALSE(ledger_.known().find("step-2"));
  EXPECT_TRUE(ledger_.retire_superseded(1).is_kept(before.id, {})) << "nothing takes its place yet";
  EXPECT_THROW(ledger_.add_snapshot(head(3, ledger_.generations().take_next(), ledger_.known().parent_id)),
               BrokenInvariant);
  ledger_.add_commit(next);
  EXPECT_EQ(ledger_.known().level("step-2"), Level::local);
  EXPECT_FALSE(ledger_.known().snapshot);
}

TEST_F(LedgerTest, ASnapshotThatIsDroppedWasNoCommit) {
  const CommitHead before = commit(1);
  CommitHead next = head(2, ledger_.generations().take_next(), ledger_.known().parent_id);
  next.tag = before.tag;
  ledger_.add_snapshot(next);
  EXPECT_EQ(ledger_.known().level(before.tag), Level::snapshot);
  ledger_.drop_snapshot();
  EXPECT_EQ(ledger_.known().level(before.tag), Level::local);
  EXPECT_EQ(ledger_.known().find_newest(before.tag)->id, before.id);
  const CommitHead after = commit(3);
  EXPECT_EQ(after.parent_id, before.id);
}

TEST_F(LedgerTest, NothingIsRetiredForACommitThatMayStillTurnOutDamaged) {
  const auto keeps_older = [&] { return ledger_.retire_superseded(1).is_kept(id(9), {}); };
  const CommitHead made = commit(1);
  EXPECT_FALSE(keeps_older());
  ledger_.mark_opened(made, false, false);
  EXPECT_TRUE(keeps_older());
  ledger_.mark_verified(id(7));
  EXPECT_TRUE(keeps_older()) << "another one was found whole";
  ledger_.mark_verified(made.id);
  EXPECT_FALSE(keeps_older());
  // Something newer takes its place.
  ledger_.mark_opened(made, false, false);
  (void)commit(2);
  EXPECT_FALSE(keeps_older());
  // It turned out damaged: all is to be looked at anew.
  ledger_.mark_opened(made, false, false);
  ledger_.drop_damaged(made.id);
  EXPECT_FALSE(ledger_.known().find(made.id));
  EXPECT_TRUE(ledger_.known().must_survey());
  EXPECT_TRUE(keeps_older());
  EXPECT_TRUE(ledger_.excluded().reason(made.id).empty()) << "it may be rebuilt";
}

TEST_F(LedgerTest, KnowsNothingAtFirst) {
  EXPECT_FALSE(ledger_.known().is_surveyed());
  EXPECT_FALSE(ledger_.known().commits_exist);
  EXPECT_FALSE(ledger_.known().newest_checkpoint());
  EXPECT_TRUE(ledger_.known().parent_id.is_none());
  EXPECT_EQ(ledger_.known().level("step-1"), Level::none);
}

TEST_F(LedgerTest, ACommitIsTheNewestAndTheParentOfTheNext) {
  const CommitHead first = commit(1);
  EXPECT_EQ(ledger_.known().parent_id, first.id);
  EXPECT_TRUE(ledger_.known().commits_exist);
  const CommitHead second = commit(2);
  EXPECT_EQ(second.parent_id, first.id);
  EXPECT_EQ(ledger_.known().newest_checkpoint()->commit, second);
  EXPECT_THAT(generations(ledger_), ElementsAre(2, 1));
}

TEST_F(LedgerTest, ACommitBeforeASurveyIsABug) {
  EXPECT_THROW(ledger_.add_commit(head(1, ledger_.generations().take_next())), BrokenInvariant);
}

TEST_F(LedgerTest, AnOpenBeforeASurveyIsABug) {
  EXPECT_THROW(ledger_.mark_opened(head(1, 1), false), BrokenInvariant);
  EXPECT_TRUE(ledger_.known().parent_id.is_none());
}

TEST_F(LedgerTest, AProtectionWithoutAnIdIsABug) {
  const CommitHead made = commit(1);
  EXPECT_THROW(ledger_.set_protected(made.id, {}), BrokenInvariant);
  EXPECT_EQ(ledger_.known().level("step-1"), Level::local);
}

TEST_F(LedgerTest, ACommitWithAnotherParentOrAnOldGenerationIsABug) {
  commit(1);
  EXPECT_THROW(ledger_.add_commit(head(2, ledger_.generations().take_next(), id(9))), BrokenInvariant);
  EXPECT_THROW(ledger_.add_commit(head(3, 1, id(1))), BrokenInvariant);
  EXPECT_THROW(ledger_.add_commit(head(4, 1000, id(1))), BrokenInvariant);  // nobody took it from the ledger
  EXPECT_THAT(generations(ledger_), ElementsAre(1));
}

TEST_F(LedgerTest, NoGenerationIsTakenThatCouldNotBeRead) {
  ledger_.generations().raise_to(kGenerationMax - 1);
  EXPECT_EQ(ledger_.generations().take_next(), kGenerationMax);
  EXPECT_THROW((void)ledger_.generations().take_next(), Error);
}

TEST_F(LedgerTest, GenerationsAreAboveAllThatWereSeen) {
  ledger_.generations().raise_to(41);
  ledger_.generations().raise_to(7);
  EXPECT_EQ(ledger_.generations().take_next(), 42U);
  EXPECT_EQ(ledger_.generations().take_next(), 43U);
  EXPECT_EQ(ledger_.generations().highest(), 43U);
}

TEST_F(LedgerTest, LevelsAreThoseOfTheNewestCommitOfATag) {
  CommitHead old = commit(1);
  ledger_.set_protected(old.id, id(100));
  ledger_.set_persistent(old.id, true);
  EXPECT_EQ(ledger_.known().level("step-1"), Level::persistent);
  CommitHead again = head(2, ledger_.generations().take_next(), old.id);
  again.tag = old.tag;
  ledger_.add_commit(again);
  EXPECT_EQ(ledger_.known().level("step-1"), Level::local);
  EXPECT_EQ(ledger_.known().find(old.id)->level(), Level::persistent);
  ledger_.set_protected(again.id, id(101));
  EXPECT_EQ(ledger_.known().level("step-1"), Level::protected_);
}

TEST_F(LedgerTest, WhatIsUnknownIsRaisedNowhere) {
  commit(1);
  ledger_.set_protected(id(9), id(100));
  ledger_.prefer_protection(id(9), id(100));
  ledger_.set_unprotected(id(9));
  ledger_.set_persistent(id(9), true);
  EXPECT_EQ(ledger_.known().level("step-1"), Level::local);
  EXPECT_FALSE(ledger_.known().find(id(9)));
}

TEST_F(LedgerTest, ASurveyReplacesEntriesAndKeepsWhatIsRuledOut) {
  commit(1);
  ledger_.exclude(id(7), "damaged");
  ledger_.apply_survey(
      {{{head(5, 9), Level::protected_, id(100), true}, {head(4, 8), Level::local, {}, false}}, {}, 12, true});
  EXPECT_THAT(generations(ledger_), ElementsAre(9, 8));
  EXPECT_EQ(ledger_.excluded().reason(id(7)), "damaged");
  EXPECT_EQ(ledger_.generations().take_next(), 13U);
  ledger_.apply_survey({{{head(4, 8)}}, {}, 8, true});
  EXPECT_EQ(ledger_.generations().take_next(), 14U) << "what was taken stays taken, though no storage shows it";
}

TEST_F(LedgerTest, ThatCommitsExistIsLearnedFromASurveyAndNotForgottenByTheNext) {
  ledger_.apply_survey({{}, {}, 0, false});
  EXPECT_FALSE(ledger_.known().commits_exist);
  ledger_.apply_survey({{}, {}, 3, true});
  EXPECT_TRUE(ledger_.known().commits_exist);
  ledger_.apply_survey({{}, {}, 3, false});
  EXPECT_TRUE(ledger_.known().commits_exist);
}

TEST_F(LedgerTest, ASurveyOutOfOrderOrOfImpossibleLevelsIsABug) {
  EXPECT_THROW(ledger_.apply_survey({{{head(4, 8)}, {head(5, 9)}}, {}, 9, true}), BrokenInvariant);
  Ledger twice;
  EXPECT_THROW(twice.apply_survey({{{head(4, 8)}, {head(4, 8)}}, {}, 9, true}), BrokenInvariant);
  Ledger level;
  EXPECT_THROW(level.apply_survey({{{head(4, 8), Level::persistent, {}, true}}, {}, 9, true}), BrokenInvariant);
  Ledger generation;
  EXPECT_THROW(generation.apply_survey({{{head(4, 8)}}, {}, 7, true}), BrokenInvariant);
}

TEST_F(LedgerTest, AnOpenedCommitIsTheParentAndTakesItsPlaceAmongTheOthers) {
  ledger_.apply_survey({{{head(5, 9)}, {head(3, 3)}}, {}, 9, true});
  ledger_.mark_opened(head(4, 8), true);
  EXPECT_EQ(ledger_.known().parent_id, id(4));
  EXPECT_THAT(generations(ledger_), ElementsAre(9, 8, 3));
  EXPECT_EQ(ledger_.known().level("step-4"), Level::persistent);
  ledger_.mark_opened(head(4, 8), false);  // known already
  EXPECT_EQ(ledger_.known().level("step-4"), Level::persistent);
  EXPECT_THAT(generations(ledger_), ElementsAre(9, 8, 3));
}

TEST_F(LedgerTest, AnOpenEndsALossAndSaysThatCommitsExist) {
  ledger_.apply_survey({{{head(4, 8)}}, {}, 8, false});
  ledger_.mark_lost();
  ledger_.mark_opened(head(4, 8), false);
  EXPECT_FALSE(ledger_.known().lost);
  EXPECT_TRUE(ledger_.known().commits_exist);
}

TEST_F(LedgerTest, ADamagedCommitIsNotOpenedAgainAndAllIsSurveyedAnew) {
  const CommitHead made = commit(1);
  ledger_.exclude_damaged(made.id, "it was damaged");
  EXPECT_TRUE(ledger_.known().lost);
  EXPECT_FALSE(ledger_.known().is_surveyed());
  EXPECT_THAT(generations(ledger_), IsEmpty());
  EXPECT_THAT(ledger_.excluded().ids(), ElementsAre(made.id));
  ledger_.apply_survey({{}, {}, 1, true});
  EXPECT_THROW(ledger_.mark_opened(made, false), BrokenInvariant);
}

/// No job restarts from an output: the next may begin without it.
TEST_F(LedgerTest, ADamagedOutputIsNoLossOfACheckpoint) {
  commit(1);
  CommitHead output = head(2, ledger_.generations().take_next(), ledger_.known().parent_id);
  output.is_output = true;
  ledger_.add_commit(output);
  ledger_.drop_damaged(output.id);
  EXPECT_FALSE(ledger_.known().lost);
  EXPECT_FALSE(ledger_.known().is_surveyed());
  EXPECT_FALSE(ledger_.known().find(output.id));
  ledger_.drop_damaged(id(1));
  EXPECT_TRUE(ledger_.known().lost);
}

/// Whoever works in the background retires nothing by what is known to be wrong.
TEST_F(LedgerTest, NothingIsRetiredUntilAllIsSurveyedAnew) {
  const CommitHead made = commit(1);
  (void)commit(2);
  ledger_.exclude_damaged(id(2), "it was damaged");
  EXPECT_TRUE(ledger_.retire_superseded(1).is_kept(id(9), id(8)));
  EXPECT_THAT(generations(ledger_), ElementsAre(made.generation));
  ledger_.apply_survey({{{made, Level::local, {}, false}}, {}, 2, true});
  EXPECT_FALSE(ledger_.retire_superseded(1).is_kept(id(9), id(8)));
}

TEST_F(LedgerTest, WhoeverBeginsACommitLooksAgainOnce) {
  EXPECT_TRUE(ledger_.known().must_survey());
  (void)commit(1);
  EXPECT_FALSE(ledger_.known().must_survey());
  ledger_.require_survey();
  EXPECT_TRUE(ledger_.known().must_survey());
  EXPECT_TRUE(ledger_.known().is_surveyed()) << "what was begun before is committed all the same";
  ledger_.apply_survey({});
  EXPECT_FALSE(ledger_.known().must_survey());
}

TEST_F(LedgerTest, ACommitEndsALossAndFreesWhatWasUnjudged) {
  ledger_.apply_survey({{}, {id(50)}, 3, true});
  ledger_.mark_lost();
  EXPECT_THROW(ledger_.clear(), BrokenInvariant);
  EXPECT_TRUE(ledger_.retire_superseded(1).is_kept(id(50), {}));
  commit(1);
  EXPECT_FALSE(ledger_.known().lost);
  EXPECT_FALSE(ledger_.retire_superseded(1).is_kept(id(50), {}));
}

TEST_F(LedgerTest, RetentionKeepsTheProtectionThatCountsAndDropsOthers) {
  const CommitHead made = commit(1);
  EXPECT_TRUE(ledger_.retire_superseded(1).is_kept(made.id, id(100)));  // unknown which counts: all stay
  ledger_.set_protected(made.id, id(100));
  const RetentionPlan plan = ledger_.retire_superseded(1);
  EXPECT_TRUE(plan.is_kept(made.id, {}));
  EXPECT_TRUE(plan.is_kept(made.id, id(100)));
  EXPECT_FALSE(plan.is_kept(made.id, id(101)));
  EXPECT_FALSE(plan.is_kept(id(9), {}));
}

TEST_F(LedgerTest, APreferredProtectionDropsTheOthersAndChangesNoLevel) {
  ledger_.apply_survey({{{head(5, 9), Level::protected_}, {head(4, 8), Level::protected_}}, {}, 9, true});
  ledger_.prefer_protection(id(5), id(100));
  EXPECT_EQ(ledger_.known().level("step-5"), Level::protected_);
  const RetentionPlan plan = ledger_.retire_superseded(1);
  EXPECT_TRUE(plan.is_kept(id(5), id(100)));
  EXPECT_FALSE(plan.is_kept(id(5), id(101)));
  EXPECT_FALSE(plan.is_kept(id(4), {})) << "what was opened is protected still, so the older one may go";
}

TEST_F(LedgerTest, TheParentStaysThoughNewerOnesSupersedeIt) {
  ledger_.apply_survey({{{head(5, 9)}, {head(4, 8)}, {head(3, 3)}}, {}, 9, true});
  ledger_.mark_opened(head(3, 3), false);
  ledger_.prefer_protection(id(3), id(100));
  EXPECT_THAT(ledger_.known().ids_to_keep(1), ElementsAre(id(5)));  // says what retire would do, and drops nothing
  const RetentionPlan plan = ledger_.retire_superseded(1);
  EXPECT_TRUE(plan.is_kept(id(3), {}));
  EXPECT_TRUE(plan.is_kept(id(3), id(100)));
  EXPECT_FALSE(plan.is_kept(id(3), id(101)));
  EXPECT_TRUE(plan.is_kept(id(5), {}));
  EXPECT_FALSE(plan.is_kept(id(4), {}));
  EXPECT_THAT(generations(ledger_), ElementsAre(9, 3));  // level and wait know what is open
  EXPECT_THAT(ledger_.known().ids_to_keep(1), ElementsAre(id(5)));
  ledger_.set_parent(id(5));
  EXPECT_FALSE(ledger_.retire_superseded(1).is_kept(id(3), {}));
  EXPECT_THAT(generations(ledger_), ElementsAre(9));
}

TEST_F(LedgerTest, NewerOnesAreDiscarded) {
  ledger_.apply_survey({{{head(5, 9)}, {head(4, 8)}, {head(3, 3)}}, {}, 9, true});
  ledger_.discard_newer(8);
  EXPECT_THAT(generations(ledger_), ElementsAre(8, 3));
}

TEST_F(LedgerTest, ForgettingAllLetsTheNextStartBeginFromZero) {
  commit(1);
  ledger_.clear();
  EXPECT_FALSE(ledger_.known().commits_exist);
  ledger_.set_commits_exist();
  EXPECT_TRUE(ledger_.known().commits_exist);
}

/// Random transitions, as engines make them: whatever happens, the newest commit and the parent are never dropped, the
/// entries stay in order, and the same calls give the same state.
TEST_F(LedgerTest, RandomHistoriesKeepTheNewestAndTheParent) {
  for (std::uint32_t seed = 1; seed <= 200; ++seed) {
    std::mt19937 random(seed);
    Ledger ledger;
    Ledger twin;
    ledger.apply_survey({});
    twin.apply_survey({});
    for (std::uint8_t step = 1; step < 60; ++step) {
      const std::vector<CommitEntry> known = ledger.known().entries;
      const Id128 some = known.empty() ? id(0) : known[random() % known.size()].commit.id;
      const auto both = [&](auto&& transition) {
        transition(ledger);
        transition(twin);
      };
      switch (random() % 6) {
        case 0:
        case 1:
          both([&](Ledger& one) { one.add_commit(head(step, one.generations().take_next(), one.known().parent_id)); });
          break;
        case 2: both([&](Ledger& one) { one.set_protected(some, id(200)); }); break;
        case 3: both([&](Ledger& one) { one.set_persistent(some, true); }); break;
        case 4:
          if (const auto entry = ledger.known().find(some))
            both([&](Ledger& one) { one.mark_opened(entry->commit, false); });
          break;
        default: {
          const auto keep = static_cast<std::uint32_t>(1 + random() % 3);
          const auto newest = ledger.known().newest_checkpoint();
          const RetentionPlan plan = ledger.retire_superseded(keep);
          ASSERT_EQ(plan.kept_protections, twin.retire_superseded(keep).kept_protections) << "seed " << seed;
          ASSERT_TRUE(!newest || plan.is_kept(newest->commit.id, newest->protection_id)) << "seed " << seed;
          ASSERT_TRUE(ledger.known().parent_id.is_none() || plan.is_kept(ledger.known().parent_id, {}))
              << "seed " << seed;
          break;
        }
      }
      ASSERT_EQ(generations(ledger), generations(twin)) << "seed " << seed;
      ASSERT_TRUE(std::ranges::is_sorted(generations(ledger), std::greater<>())) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace kedge::commits::ledger_test
