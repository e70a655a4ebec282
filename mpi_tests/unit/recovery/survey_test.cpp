// The survey by itself: what stores, prefix, record and ledger each do to the candidates and to the ledger.
#include "recovery/survey.hpp"

#include <algorithm>

#include "recovery/found_tag.hpp"
#include "unit/recovery/fixture.hpp"

namespace kedge::recovery::survey_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class SurveyTest : public RecoveryTest {
 protected:
  /// What all ranks see; `selection` null: nothing is to be opened.
  Survey survey(const Selection* selection) {
    std::vector<Survey> surveys(kRanks);
    run_well([&](RankOfJob& rank) { surveys[static_cast<std::size_t>(rank.group.rank())] = make(rank, selection); });
    for (const Survey& other : surveys) EXPECT_EQ(facts(other), facts(surveys[0]));
    return std::move(surveys[0]);
  }
  Survey survey(const Selection& selection) { return survey(&selection); }

  static Survey make(RankOfJob& rank, const Selection* selection) {
    StorageSurvey survey(rank.group, rank.storage, rank.log);
    survey.look();
    return survey.survey(selection);
  }
  static std::vector<std::string> facts(const Survey& survey) {
    std::vector<std::string> all;
    for (const Candidate& one : survey.candidates) {
      all.push_back(one.commit.tag + " " + std::to_string(one.commit.generation) + (one.recoverable ? " yes" : " no") +
                    (one.in_stores ? " stores" : "") + (one.persistent ? " prefix" : "") +
                    (one.directory.empty() ? "" : " in " + one.directory) +
                    (one.reason.empty() ? "" : ": " + one.reason));
    }
    return all;
  }
  /// What this rank must keep although it is not among the entries.
  bool is_kept(int rank, const CommitHead& head) {
    return ledgers[static_cast<std::size_t>(rank)].retire_superseded(2).is_kept(head.id, {});
  }
  std::vector<Tag> entries(int rank = 0) const {
    std::vector<Tag> tags;
    for (const auto& entry : ledgers[static_cast<std::size_t>(rank)].known().entries) tags.push_back(entry.commit.tag);
    return tags;
  }
};

TEST_F(SurveyTest, WhatTheStoresHoldIsRecoverableAndInTheLedgerNewestFirst) {
  put(commit(1, 10, "a"));
  put(commit(2, 11, "b"));
  EXPECT_THAT(facts(survey(latest)), ElementsAre("b 11 yes stores", "a 10 yes stores"));
  for (int rank = 0; rank < kRanks; ++rank) EXPECT_THAT(entries(rank), ElementsAre("b", "a"));
  EXPECT_TRUE(ledgers[0].known().is_surveyed());
  EXPECT_FALSE(ledgers[0].known().entries[0].persistent);
  EXPECT_EQ(ledgers[0].known().entries[0].in_stores, Level::local);
}

TEST_F(SurveyTest, OfThePrefixThereIsWhatTheSelectionCanComeToDownToTheFirstThatIsGood) {
  put(commit(1, 10, "a"));
  publish(commit(5, 14, "e")).problem = "it is torn";
  publish(commit(4, 13, "d"));
  publish(commit(3, 12, "c"));
  const Survey found = survey(latest);
  EXPECT_THAT(facts(found),
              ElementsAre(HasSubstr("e 14 no: on the prefix: "), "d 13 yes prefix in d.13", "a 10 yes stores"));
  EXPECT_THAT(found.candidates[0].reason, HasSubstr("it is torn"));
  EXPECT_EQ(found.candidates[1].total_bytes, 77U);
  EXPECT_THAT(entries(), ElementsAre("a")) << "the ledger lists what the stores have";
  EXPECT_THAT(facts(survey(Tag{"c"})), ElementsAre("c 12 yes prefix in c.12", "a 10 yes stores"));
  EXPECT_THAT(facts(survey(Before{"d"})),
              ElementsAre("d 13 yes prefix in d.13", "c 12 yes prefix in c.12", "a 10 yes stores"));
}

TEST_F(SurveyTest, WhatIsInBothIsPersistentUnlessItsManifestIsNoUse) {
  put(commit(1, 10, "a"));
  put(commit(2, 11, "b"));
  publish(commit(1, 10, "a"));
  publish(commit(2, 11, "b")).problem = "it is torn";
  EXPECT_THAT(facts(survey(latest)), ElementsAre("b 11 yes stores", "a 10 yes stores prefix in a.10"));
  EXPECT_FALSE(ledgers[1].known().entries[0].persistent);
  EXPECT_TRUE(ledgers[1].known().entries[1].persistent);
}

TEST_F(SurveyTest, AManifestOfAnotherCommitIsNoUse) {
  publish(commit(1, 10, "a")).id_in_manifest = id_of(9);
  EXPECT_THAT(facts(survey(latest)), ElementsAre(HasSubstr("the manifest belongs to another commit")));
}

TEST_F(SurveyTest, AManifestOfAnotherRunIsNoUse) {
  publish(commit(1, 10, "a")).run_in_manifest = id_of(9);
  EXPECT_THAT(facts(survey(latest)), ElementsAre(HasSubstr("the manifest belongs to another run")));
}

/// Surveys follow each other, one for each damage that is found.
TEST_F(SurveyTest, WhatCannotBeUsedIsLoggedOnce) {
  tiers[0].unusable = {{"x.1-00000000", true, "it is torn"}};
  run_well([&](RankOfJob& rank) {
    StorageSurvey survey(rank.group, rank.storage, rank.log);
    const Selection selection = latest;
    for (int turn = 0; turn < 3; ++turn) {
      survey.look();
      (void)survey.survey(&selection);
    }
  });
  EXPECT_EQ(
      std::ranges::count_if(lines(), [](const auto& line) { return line.find("it is torn") != std::string::npos; }), 1);
}

TEST_F(SurveyTest, WhoACommitIsSaysItsManifestAndNotTheList) {
  publish(commit(1, 10, "a")).time_in_manifest = 77;
  for (FakeTier& prefix_storage : tiers) prefix_storage.published[0].time_in_manifest = 77;
  EXPECT_EQ(survey(latest).candidates.at(0).commit.time_ns, 77);
}

TEST_F(SurveyTest, WhatWasSeenCountsThoughTheRunsRecordCannotBeRead) {
  publish(commit(1, 10, "a"));
  publish(commit(2, 5'000'001, "b"));
  on_records_opened = [&] {
    faults::Volume gone;
    gone.read_errno = 116;  // ESTALE
    disk.set_volume("/prefix", gone);
    for (FakeTier& prefix_storage : tiers) prefix_storage.published[0].problem = "it is not read";
  };
  const Selection selection = latest;
  for (const auto& outcome : run_ranks([&](RankOfJob& rank) { (void)make(rank, &selection); })) {
    EXPECT_TRUE(outcome.failure);
  }
  for (const commits::Ledger& ledger : ledgers) {
    EXPECT_EQ(ledger.generations().highest(), 5'000'001U);
    EXPECT_TRUE(ledger.known().commits_exist);
  }
}

TEST_F(SurveyTest, WhatWasDiscardedIsNotRecoverableWhereverItLies) {
  const CommitHead in_stores = commit(2, 11, "b");
  const CommitHead on_prefix = commit(3, 12, "c");
  put(commit(1, 10, "a"));
  put(in_stores);
  publish(on_prefix);
  discard(in_stores);
  discard(on_prefix);
  const Survey found = survey(latest);
  EXPECT_THAT(facts(found),
              ElementsAre("c 12 no: it was discarded when an older one was opened",
                          "b 11 no stores: it was discarded when an older one was opened", "a 10 yes stores"));
  EXPECT_TRUE(found.candidates[0].discarded);
  EXPECT_TRUE(found.candidates[1].discarded);
  EXPECT_THAT(entries(), ElementsAre("a"));
}

TEST_F(SurveyTest, WhatTheLedgerExcludesIsNotRecoverableWhereverItLies) {
  put(commit(1, 10, "a"));
  put(commit(2, 11, "b"));
  publish(commit(3, 12, "c"));
  publish(commit(1, 10, "a"));
  for (commits::Ledger& ledger : ledgers) {
    ledger.exclude(id_of(2), "it is no use");
    ledger.exclude(id_of(3), "nor is this");
  }
  const Survey found = survey(latest);
  EXPECT_THAT(facts(found),
              ElementsAre("c 12 no: nor is this", "b 11 no stores: it is no use", "a 10 yes stores prefix in a.10"));
  EXPECT_FALSE(found.candidates[0].discarded);
  EXPECT_THAT(entries(), ElementsAre("a"));
}

TEST_F(SurveyTest, WhatAnotherUserPutThereIsNotThisRunsUnlessOthersAreTrusted) {
  publish(commit(1, 900, "a"));
  for (FakeTier& prefix_storage : tiers) prefix_storage.published[0].of_another_user = true;
  EXPECT_THAT(facts(survey(latest)), IsEmpty());
  EXPECT_TRUE(logged("a.900 on the prefix is not trusted"));
  EXPECT_FALSE(ledgers[0].known().commits_exist);
  EXPECT_EQ(ledgers[0].generations().highest(), 1'000'000U);
  trust = Trust::any;
  EXPECT_THAT(facts(survey(latest)), ElementsAre("a 900 yes prefix in a.900"));
  EXPECT_TRUE(ledgers[1].known().commits_exist);
}

TEST_F(SurveyTest, WhatCannotBeUsedOnThePrefixIsNamedIfItWasCommitted) {
  tiers[0].unusable = {{"x.1-00000000", true, "it is torn"}, {"y.2-00000000", false, "a flush was cut short"}};
  EXPECT_THAT(facts(survey(latest)), IsEmpty());
  EXPECT_TRUE(logged("x.1-00000000 on the prefix cannot be used: it is torn"));
  EXPECT_FALSE(logged("y.2"));
}

TEST_F(SurveyTest, EachOfStoresPrefixLedgerAndIncarnationRaisesTheGeneration) {
  (void)survey(latest);
  EXPECT_EQ(ledgers[1].generations().highest(), 1'000'000U) << "each start counts from its own 1,000,000";
  put(commit(1, 1'000'010, "a"), {1});
  (void)survey(latest);
  for (const auto& ledger : ledgers) EXPECT_EQ(ledger.generations().highest(), 1'000'010U);
  publish(commit(2, 1'000'020, "b"));
  (void)survey(latest);
  for (const auto& ledger : ledgers) EXPECT_EQ(ledger.generations().highest(), 1'000'020U);
  ledgers[1].generations().raise_to(1'000'030);
  (void)survey(latest);
  for (const auto& ledger : ledgers) EXPECT_EQ(ledger.generations().highest(), 1'000'030U);
  run.incarnation = 3;
  (void)survey(latest);
  for (const auto& ledger : ledgers) EXPECT_EQ(ledger.generations().highest(), 3'000'000U);
}

TEST_F(SurveyTest, NewerOnesOfAnotherRankCountStayAndOlderOnesDoNot) {
  const CommitHead newer = commit(3, 12, "c", 5);
  const CommitHead older = commit(1, 10, "a", 5);
  put(older);
  put(commit(2, 11, "b"));
  put(newer);
  (void)survey(latest);
  EXPECT_TRUE(is_kept(0, newer));
  EXPECT_FALSE(is_kept(0, older));
}

TEST_F(SurveyTest, WhatLostItsOtherPartsStaysIfCommitsExistAndNothingElseIsThere) {
  const CommitHead lost = commit(1, 10, "a");
  put(lost, {1});
  (void)survey(latest);
  EXPECT_FALSE(is_kept(1, lost)) << "pieces of a first checkpoint that a crash cut short";
  for (commits::Ledger& ledger : ledgers) ledger.set_commits_exist();
  (void)survey(latest);
  EXPECT_TRUE(is_kept(1, lost));
  put(commit(2, 11, "b"));
  (void)survey(latest);
  EXPECT_FALSE(is_kept(1, lost));
}

TEST_F(SurveyTest, CommitsOfAnotherRunStayWhereTheyLieAsLongAsThisOneHasNone) {
  CommitHead strange = commit(1, 10, "a");
  strange.run_id = id_of(50);
  put(strange, {1});
  EXPECT_THAT(facts(survey(latest)), IsEmpty());
  EXPECT_TRUE(is_kept(1, strange));
  put(commit(2, 11, "b"));
  EXPECT_THAT(facts(survey(latest)), ElementsAre("b 11 yes stores"));
  EXPECT_FALSE(is_kept(1, strange));
}

TEST_F(SurveyTest, APrefixThatCannotBeReachedMattersOnlyIfSomethingIsToBeOpened) {
  put(commit(1, 10, "a"));
  tiers[0].unreachable = true;
  EXPECT_THAT(facts(survey(nullptr)), ElementsAre("a 10 yes stores"));
  EXPECT_TRUE(logged("the prefix could not be read"));
  EXPECT_THAT(entries(), ElementsAre("a"));
  const Selection selection = latest;
  for (const auto& outcome : run_ranks([&](RankOfJob& rank) { (void)make(rank, &selection); })) {
    ASSERT_TRUE(outcome.failure);
    EXPECT_EQ(outcome.failure->code, ErrorCode::io);
  }
}

TEST_F(SurveyTest, WithoutTheRunsRecordNothingMayPushOutAnythingAndNothingIsOpened) {
  const CommitHead part = commit(1, 10, "a");
  put(part, {0});
  put(commit(2, 11, "b"));
  (void)survey(nullptr);
  EXPECT_FALSE(is_kept(0, part));
  on_records_opened = [&] {
    faults::Volume gone;
    gone.read_errno = 116;  // ESTALE
    disk.set_volume("/prefix", gone);
  };
  const Selection selection = latest;
  for (const auto& outcome : run_ranks([&](RankOfJob& rank) { (void)make(rank, &selection); })) {
    ASSERT_TRUE(outcome.failure);
    EXPECT_EQ(outcome.failure->code, ErrorCode::io);
  }
  disk.set_volume("/prefix", {});
  EXPECT_THAT(facts(survey(nullptr)), ElementsAre("b 11 yes stores", HasSubstr("a 10 no")));
  EXPECT_TRUE(is_kept(0, part));
}

TEST_F(SurveyTest, WhatIsOfAnotherRunOrRankCountOrNotTrustedOnThePrefixIsSkipped) {
  CommitHead strange = commit(9, 20, "z");
  strange.run_id = id_of(50);
  publish(strange);
  publish(commit(3, 12, "c", 5));
  publish(commit(2, 11, "b")).is_trusted = false;
  publish(commit(1, 10, "a"));
  EXPECT_THAT(facts(survey(latest)), ElementsAre("c 12 yes prefix in c.12"));
  other_ranks = OtherRanks::refuse;
  EXPECT_THAT(facts(survey(latest)),
              ElementsAre("c 12 no: it was saved by 5 ranks and this job has 2; start it with 5 ranks",
                          HasSubstr("b 11 no: on the prefix: io: it is not trusted"), "a 10 yes prefix in a.10"));
}

TEST_F(SurveyTest, BeforeCountsFromTheOldestOfItsTag) {
  put(commit(2, 11, "b"));
  put(commit(4, 13, "b"));
  publish(commit(3, 12, "c"));
  publish(commit(1, 10, "a"));
  EXPECT_THAT(facts(survey(Before{"b"})), ElementsAre("b 13 yes stores", "b 11 yes stores", "a 10 yes prefix in a.10"));
}

TEST_F(SurveyTest, BeforeCountsFromTheOldestThoughThePrefixHasANewerOneOfItsTag) {
  put(commit(2, 11, "b"));
  publish(commit(4, 13, "b"));
  publish(commit(3, 12, "c"));
  EXPECT_THAT(facts(survey(Before{"b"})), ElementsAre("b 11 yes stores"));
}

/// Rank 0 may have read in part what the others then know nothing of.
TEST_F(SurveyTest, ARecordThatCanBeReadOnlyInPartIsTheSameForAllRanks) {
  const CommitHead discarded = commit(2, 11, "b");
  put(commit(1, 10, "a"));
  put(discarded);
  discard(discarded);
  int surveyed = 0;
  for (std::uint64_t n = 1; n <= 40; ++n) {
    on_records_opened = [&] { disk.fail_read(0, disk.reads(0) + n, 5); };  // EIO
    std::vector<std::vector<std::string>> found(kRanks);
    const auto outcomes = run_ranks(
        [&](RankOfJob& rank) { found[static_cast<std::size_t>(rank.group.rank())] = facts(make(rank, nullptr)); });
    disk.heal(0);
    if (!outcomes[0].returned() || !outcomes[1].returned()) continue;
    ++surveyed;
    EXPECT_EQ(found[0], found[1]) << "read " << n;
  }
  EXPECT_GT(surveyed, 0);
}

TEST_F(SurveyTest, OfManyThatAreNoUseSomeAreListedAndTheGoodOneIsFound) {
  for (std::uint8_t number = 1; number <= 30; ++number) {
    publish(commit(number, number, "t")).problem = number == 1 ? "" : "it is torn";
  }
  const Survey found = survey(latest);
  ASSERT_EQ(found.candidates.size(), kUnusableListedMax + 1);
  EXPECT_TRUE(found.candidates.back().recoverable);
}

TEST_F(SurveyTest, AContainerOfAnotherRankIsFoundInsteadOfThatWhichIsMissing) {
  put(commit(1, 10, "a"));
  disk.write_all(path_of(1, 1), disk.read_all(path_of(0, 1)));
  const Survey found = survey(latest);
  EXPECT_THAT(facts(found), ElementsAre(HasSubstr("a 10 no: the container of rank 1 is missing: found instead: ")));
  EXPECT_THAT(found.unreadable, HasSubstr(path_of(1, 1)));
}

TEST_F(SurveyTest, WhatWasLeftOutAndWhatChangedSinceTheLookIsReadOthersAreNotReadTwice) {
  put(commit(1, 10, "a"));
  put(commit(2, 11, "b"));
  put(commit(3, 12, "c"));
  put(commit(4, 13, "d"));
  const std::vector<store::FileKey> own_of_b = {{id_of(2), {}}};
  run_well([&](RankOfJob& rank) {
    const std::string& path = path_of(rank.group.rank(), 1);
    StorageSurvey storage(rank.group, rank.storage, rank.log);
    storage.look();
    EXPECT_TRUE(storage.verify(id_of(2), {.own = own_of_b}));
    damage(rank.group.rank(), 2);
    EXPECT_FALSE(storage.verify(id_of(2), {}));
    EXPECT_TRUE(storage.verify(id_of(1), {}));
    const std::uint64_t before = disk.bytes_read(path);
    EXPECT_TRUE(storage.verify(id_of(1), {}));
    EXPECT_EQ(disk.bytes_read(path), before);
    damage(rank.group.rank(), 1);
    storage.look();
    EXPECT_FALSE(storage.verify(id_of(1), {}));
    storage.look();
    EXPECT_TRUE(storage.verify(id_of(3), {}));
    storage.look();
    disk.write_all(path_of(rank.group.rank(), 3), disk.read_all(path_of(rank.group.rank(), 4)));
    EXPECT_FALSE(storage.verify(id_of(3), {})) << "whole, and another commit's";
  });
}

TEST_F(SurveyTest, WhatTheVerificationFindsIsInTheNextSurveyWithoutAnotherLook) {
  put(commit(1, 10, "a"));
  put(commit(2, 11, "b"));
  damage(1, 2);
  run_well([&](RankOfJob& rank) {
    StorageSurvey storage(rank.group, rank.storage, rank.log);
    const Selection selection = latest;
    storage.look();
    EXPECT_THAT(facts(storage.survey(&selection)), ElementsAre("b 11 yes stores", "a 10 yes stores"));
    EXPECT_EQ(storage.verify(id_of(2), {}), rank.is_root());
    EXPECT_THAT(facts(storage.survey(&selection)),
                ElementsAre(HasSubstr("b 11 no: the container of rank 1 is damaged"), "a 10 yes stores"));
    EXPECT_TRUE(storage.verify(id_of(2), {})) << "it was read since the look";
    EXPECT_TRUE(storage.verify(id_of(1), {}));
  });
}

}  // namespace
}  // namespace kedge::recovery::survey_test
