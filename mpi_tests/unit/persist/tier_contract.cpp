// What every tier promises, whatever it is made of: a parallel filesystem here, an object store one day.
#include "unit/persist/tier_contract.hpp"

#include <gmock/gmock.h>

#include <optional>

#include "base/attempt.hpp"
#include "persist/prefix_retention.hpp"
#include "unit/persist/support.hpp"

namespace kedge::faults {
namespace {

using persist::PrefixStorage;
using persist::testing::sample_commit;
using persist::testing::SampleCommit;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::uint64_t kOperations = 40;  // more than any single call makes

void put(const PrefixStorage& prefix_storage, const SampleCommit& commit, std::uint32_t rank) {
  format::testing::MemoryFile file(commit.containers.at(rank));
  const std::uint32_t crc = prefix_storage.writer->put_container(commit.entry, {rank}, {file, file.size()});
  EXPECT_EQ(crc, commit.rows.at(rank).crc);
}

/// All but publish.
void bring(TierPlace& place, const SampleCommit& commit) {
  place.prefix_storage().writer->begin_commit(commit.entry, commit.manifest.size(), {});
  put(place.prefix_storage(), commit, 0);
  put(place.other_rank(), commit, 1);
}

void publish(TierPlace& place, const SampleCommit& commit) {
  bring(place, commit);
  EXPECT_EQ(place.prefix_storage().writer->publish(commit.entry, commit.manifest), "");
}

std::optional<ErrorCode> code_of(const std::function<void()>& step) {
  const auto failure = attempt(step);
  return failure ? std::optional(failure->code) : std::nullopt;
}

/// Every container of it can be read to the last byte.
bool is_whole(const PrefixStorage& prefix_storage, const SampleCommit& commit) {
  for (std::uint32_t rank = 0; rank < commit.containers.size(); ++rank) {
    const auto failure = attempt([&] {
      const auto opened = prefix_storage.reader->open_container(commit.entry.directory, commit.entry.commit, {rank});
      if (!opened.reader->verify().empty()) throw Error(ErrorCode::corrupt, "damaged");
    });
    if (failure) return false;
  }
  return true;
}

void expect_nothing_counts(const PrefixStorage& prefix_storage, const SampleCommit& commit) {
  EXPECT_FALSE(prefix_storage.reader->is_published(commit.entry.directory));
  EXPECT_THAT(prefix_storage.reader->list_commits().entries, IsEmpty());
  EXPECT_EQ(code_of([&] { (void)prefix_storage.reader->read_commit(commit.entry.directory); }), ErrorCode::not_found);
  EXPECT_EQ(
      code_of([&] { (void)prefix_storage.reader->open_container(commit.entry.directory, commit.entry.commit, {0}); }),
      ErrorCode::not_found);
}

/// The commit is there to the last byte, or it is not there.
void expect_whole_or_none(TierPlace& place, const SampleCommit& commit, std::uint64_t n) {
  if (place.other_rank().reader->is_published(commit.entry.directory)) {
    EXPECT_TRUE(is_whole(place.other_rank(), commit)) << "operation " << n;
  } else {
    EXPECT_THAT(place.other_rank().reader->list_commits().entries, IsEmpty()) << "operation " << n;
  }
}

}  // namespace

TEST_P(TierContract, AReaderSeesNothingBeforePublish) {
  const auto place = GetParam()();
  const SampleCommit commit = sample_commit(1);
  expect_nothing_counts(place->other_rank(), commit);
  place->prefix_storage().writer->begin_commit(commit.entry, commit.manifest.size(), {});
  EXPECT_FALSE(place->prefix_storage().writer->is_complete(commit.entry));
  put(place->prefix_storage(), commit, 0);
  put(place->other_rank(), commit, 1);
  expect_nothing_counts(place->other_rank(), commit);
  for (const persist::UnusableTag& one : place->other_rank().reader->list_commits().unusable_tags)
    EXPECT_FALSE(one.has_manifest);
}

TEST_P(TierContract, WhatIsPublishedIsThereForEveryRank) {
  const auto place = GetParam()();
  const SampleCommit commit = sample_commit(1);
  publish(*place, commit);
  for (const PrefixStorage* prefix_storage : {&place->prefix_storage(), &place->other_rank()}) {
    EXPECT_TRUE(prefix_storage->reader->is_published(commit.entry.directory));
    EXPECT_THAT(prefix_storage->reader->list_commits().entries, ElementsAre(commit.entry));
    EXPECT_EQ(prefix_storage->reader->read_commit(commit.entry.directory), commit.entry);
    EXPECT_TRUE(prefix_storage->reader->is_own(commit.entry));
    EXPECT_EQ(code_of([&] { prefix_storage->reader->require_trusted(commit.entry); }), std::nullopt);
    EXPECT_TRUE(is_whole(*prefix_storage, commit));
  }
  EXPECT_TRUE(place->prefix_storage().writer->is_complete(commit.entry));
}

TEST_P(TierContract, ListsNewestFirst) {
  const auto place = GetParam()();
  for (const std::uint64_t generation : {2U, 9U, 10U, 1U}) publish(*place, sample_commit(generation));
  std::vector<std::uint64_t> generations;
  for (const auto& entry : place->other_rank().reader->list_commits().entries)
    generations.push_back(entry.commit.generation);
  EXPECT_THAT(generations, ElementsAre(10, 9, 2, 1));
}

TEST_P(TierContract, APublishThatFailsIsDoneOrLeavesNothingThatCounts) {
  const SampleCommit commit = sample_commit(1);
  int failed = 0;
  for (std::uint64_t n = 1; n <= kOperations; ++n) {
    const auto place = GetParam()();
    bring(*place, commit);
    place->fail(n);
    const auto failure = attempt([&] { (void)place->prefix_storage().writer->publish(commit.entry, commit.manifest); });
    place->heal();
    if (!failure) continue;
    ++failed;
    expect_whole_or_none(*place, commit, n);
    place->prefix_storage().remover->discard_unpublished(commit.entry);
    expect_whole_or_none(*place, commit, n);
    if (place->prefix_storage().writer->is_complete(commit.entry)) continue;
    expect_nothing_counts(place->other_rank(), commit);
    EXPECT_THAT(place->prefix_storage().reader->list_commits().unusable_tags, IsEmpty()) << "operation " << n;
    publish(*place, commit);
    EXPECT_TRUE(is_whole(place->other_rank(), commit)) << "operation " << n;
  }
  EXPECT_GT(failed, 2);
}

TEST_P(TierContract, AnAttemptThatFailedIsReplacedByTheNext) {
  const SampleCommit commit = sample_commit(1);
  for (std::uint64_t n = 1; n <= kOperations; ++n) {
    const auto place = GetParam()();
    place->fail(n);
    (void)attempt([&] {
      place->prefix_storage().writer->begin_commit(commit.entry, commit.manifest.size(), {});
      put(place->prefix_storage(), commit, 0);
    });
    place->heal();
    publish(*place, commit);
    EXPECT_TRUE(is_whole(place->other_rank(), commit)) << "operation " << n;
  }
}

TEST_P(TierContract, DiscardSparesWhatIsPublished) {
  const auto place = GetParam()();
  const SampleCommit commit = sample_commit(1);
  publish(*place, commit);
  place->prefix_storage().remover->discard_unpublished(commit.entry);
  EXPECT_TRUE(is_whole(place->other_rank(), commit));
}

TEST_P(TierContract, ARemovalTakesTheManifestFirst) {
  const SampleCommit commit = sample_commit(1);
  int failed = 0;
  for (std::uint64_t n = 1; n <= kOperations; ++n) {
    const auto place = GetParam()();
    publish(*place, commit);
    place->fail(n);
    const auto failure = attempt([&] { place->prefix_storage().remover->remove_commit(commit.entry); });
    place->heal();
    expect_whole_or_none(*place, commit, n);
    if (!failure) continue;
    ++failed;
    place->start_again();
    (void)place->prefix_storage().remover->remove_leftovers(commit.entry.commit.run_id);
    expect_whole_or_none(*place, commit, n);
    EXPECT_THAT(place->other_rank().reader->list_commits().unusable_tags, IsEmpty()) << "operation " << n;
  }
  EXPECT_GT(failed, 2);
}

TEST_P(TierContract, ASweepEndsWhatAnEarlierStartLeft) {
  const auto place = GetParam()();
  const SampleCommit commit = sample_commit(1);
  bring(*place, commit);
  place->start_again();
  EXPECT_THAT(place->prefix_storage().remover->remove_leftovers(commit.entry.commit.run_id), IsEmpty());
  expect_nothing_counts(place->other_rank(), commit);
  EXPECT_THAT(place->other_rank().reader->list_commits().unusable_tags, IsEmpty());
}

TEST_P(TierContract, AnOvertakenStartChangesNothing) {
  const auto place = GetParam()();
  const SampleCommit there = sample_commit(1);
  const SampleCommit begun = sample_commit(2);
  publish(*place, there);
  bring(*place, begun);
  place->start_again();
  const PrefixStorage& old = place->overtaken();
  EXPECT_EQ(code_of([&] { old.writer->begin_commit(begun.entry, 1000, {}); }), ErrorCode::busy);
  EXPECT_EQ(code_of([&] { (void)old.writer->publish(begun.entry, begun.manifest); }), ErrorCode::busy);
  EXPECT_EQ(code_of([&] { old.remover->discard_unpublished(begun.entry); }), ErrorCode::busy);
  EXPECT_EQ(code_of([&] { old.remover->remove_commit(there.entry); }), ErrorCode::busy);
  EXPECT_EQ(code_of([&] { (void)old.remover->remove_leftovers(there.entry.commit.run_id); }), ErrorCode::busy);
  EXPECT_EQ(code_of([&] { old.remover->set_pinned(there.entry, true); }), ErrorCode::busy);
  EXPECT_THAT(place->other_rank().reader->list_commits().entries, ElementsAre(there.entry));
  EXPECT_TRUE(is_whole(place->other_rank(), there));
}

TEST_P(TierContract, APinIsSeenAndEndsWithItsRemoval) {
  const auto place = GetParam()();
  const SampleCommit commit = sample_commit(1);
  publish(*place, commit);
  for (const bool pinned : {true, true, false, false}) {
    place->prefix_storage().remover->set_pinned(commit.entry, pinned);
    EXPECT_EQ(place->other_rank().reader->read_commit(commit.entry.directory).pinned, pinned);
    EXPECT_EQ(place->other_rank().reader->list_commits().entries.at(0).pinned, pinned);
  }
}

// --- what is said above the interface, in its terms

TEST_P(TierContract, RetentionKeepsTheNewestOfUseAndWhatIsPinnedOrSpared) {
  const auto place = GetParam()();
  for (std::uint64_t generation = 1; generation <= 7; ++generation) publish(*place, sample_commit(generation));
  const auto commit_of = [](std::uint64_t generation) { return sample_commit(generation).entry.commit; };
  place->prefix_storage().remover->set_pinned(sample_commit(1).entry, true);
  place->markers().mark_discarded(commit_of(7).id);
  const persist::PrefixRetention retention{commit_of(1).run_id, 2, {commit_of(3).id}, {commit_of(6).id}};
  persist::PrefixCommitList history;
  const persist::RetractionResult retained =
      persist::retract_old_commits(place->prefix_storage(), place->markers(), history, retention);
  EXPECT_FALSE(retained.failure);
  std::vector<std::uint64_t> generations;
  for (const auto& entry : place->other_rank().reader->list_commits().entries)
    generations.push_back(entry.commit.generation);
  EXPECT_THAT(generations, ElementsAre(7, 6, 5, 4, 3, 1));
  ASSERT_EQ(retained.retracted.size(), 1U);
  EXPECT_EQ(retained.retracted[0].commit.generation, 2U);
}

TEST_P(TierContract, RetentionOfAllRemovesNothing) {
  const auto place = GetParam()();
  const SampleCommit commit = sample_commit(1);
  publish(*place, commit);
  const persist::PrefixRetention retention{commit.entry.commit.run_id, 0, {}, {}};
  persist::PrefixCommitList history;
  EXPECT_THAT(persist::retract_old_commits(place->prefix_storage(), place->markers(), history, retention).retracted,
              IsEmpty());
  EXPECT_TRUE(is_whole(place->other_rank(), commit));
}

/// One removal at a time: the oldest, which fails once, does not stand before the others.
TEST_P(TierContract, RetentionTriesWhatFailedAfterTheOthers) {
  bool failed_once = false;
  for (std::uint64_t n = 1; n <= kOperations && !failed_once; ++n) {
    const auto place = GetParam()();
    for (std::uint64_t generation = 1; generation <= 4; ++generation) publish(*place, sample_commit(generation));
    const auto id_of = [](std::uint64_t generation) { return sample_commit(generation).entry.commit.id; };
    const persist::PrefixRetention retention{sample_commit(1).entry.commit.run_id, 1, {id_of(4)}, {}};
    persist::PrefixCommitList history;
    const auto one_more = [&] {
      return persist::retract_old_commits(place->prefix_storage(), place->markers(), history, retention,
                                          [begun = 0]() mutable { return begun++ > 0; });
    };
    place->fail(n);
    const persist::RetractionResult first = one_more();
    place->heal();
    failed_once = first.failure && history.is_unremovable(id_of(1));
    if (!failed_once) continue;
    for (const std::uint64_t generation : {2U, 3U, 1U}) {
      const persist::RetractionResult next = one_more();
      ASSERT_EQ(next.retracted.size(), 1U);
      EXPECT_EQ(next.retracted[0].commit.generation, generation);
    }
  }
  EXPECT_TRUE(failed_once);
}

TEST_P(TierContract, RetentionThatFailsSaysWhatIsGone) {
  for (std::uint64_t n = 1; n <= kOperations; ++n) {
    const auto place = GetParam()();
    for (std::uint64_t generation = 1; generation <= 3; ++generation) publish(*place, sample_commit(generation));
    place->fail(n);
    const CommitHead newest = sample_commit(3).entry.commit;
    persist::PrefixCommitList history;
    const persist::RetractionResult retained = persist::retract_old_commits(
        place->prefix_storage(), place->markers(), history, {newest.run_id, 1, {newest.id}, {}});
    place->heal();
    for (std::uint64_t generation = 1; generation <= 2; ++generation) {
      const SampleCommit commit = sample_commit(generation);
      const bool said = std::ranges::any_of(retained.retracted, [&](const persist::TagEntry& entry) {
        return entry.commit.id == commit.entry.commit.id;
      });
      EXPECT_EQ(said, !place->other_rank().reader->is_published(commit.entry.directory)) << generation << " at " << n;
    }
  }
}

}  // namespace kedge::faults
