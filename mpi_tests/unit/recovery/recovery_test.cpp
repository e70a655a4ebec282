// The loop that brings a commit back: what is found leads to another selection, what fails to another look, and damage
// in what is rebuilt or moved is noticed.
#include "recovery/recovery.hpp"

#include "comm/channels.hpp"
#include "harness/forwarding_communicator.hpp"
#include "unit/recovery/fixture.hpp"

namespace kedge::recovery::recovery_test {
namespace {

using testing::HasSubstr;

class RecoveryLoop : public RecoveryTest {
 protected:
  [[nodiscard]] Recovery make(RankOfJob& rank) const { return {rank.group, rank.storage, policy, rank.log}; }
  /// What every rank opens; nothing if the run has none.
  std::optional<Opened> open(const Selection& selection, Newer newer = Newer::keep) {
    std::vector<std::optional<Opened>> opened(kRanks);
    run_well([&](RankOfJob& rank) {
      Recovery recovery = make(rank);
      opened[static_cast<std::size_t>(rank.group.rank())] = recovery.open(selection, newer);
    });
    EXPECT_EQ(opened[0].has_value(), opened[1].has_value());
    if (opened[0] && opened[1]) {
      EXPECT_EQ(opened[0]->commit, opened[1]->commit);
    }
    return opened[0];
  }
  Failure failure_of_open(const Selection& selection) {
    const auto outcomes = run_ranks([&](RankOfJob& rank) { (void)make(rank).open(selection, Newer::keep); });
    for (const auto& outcome : outcomes) {
      EXPECT_TRUE(outcome.failure);
      EXPECT_EQ(to_string(outcome.failure.value_or(Failure{})), to_string(outcomes[0].failure.value_or(Failure{})));
    }
    return outcomes[0].failure.value_or(Failure{});
  }
  /// A container of which only the header is read, once in each look.
  void put_witness() {
    CommitHead head = commit(150, 1, "witness");
    head.run_id = id_of(50);
    put(head, {0});
  }
  [[nodiscard]] std::uint64_t bytes_read_of_witness() const { return disk.bytes_read(path_of(0, 150)); }

  RecoveryPolicy policy{Verify::all, false, 2, {}};
};

TEST_F(RecoveryLoop, DamageThatTheVerificationFindsLeadsToAnotherSelectionWithoutAnotherLook) {
  put(commit(1, 10, "a"));
  put(commit(2, 11, "b"));
  put_witness();
  std::uint64_t before = bytes_read_of_witness();
  EXPECT_EQ(open(latest)->commit.tag, "b");
  const std::uint64_t one_look = bytes_read_of_witness() - before;
  ASSERT_GT(one_look, 0U);
  damage(1, 2);
  before = bytes_read_of_witness();
  EXPECT_EQ(open(latest)->commit.tag, "a");
  EXPECT_EQ(bytes_read_of_witness() - before, one_look);
  EXPECT_TRUE(logged("skipped b (generation 11): the container of rank 1 is damaged"));
  EXPECT_FALSE(logged("could not be recovered"));
}

TEST_F(RecoveryLoop, DamageOfWhatStaysBesideTheOpenedIsFoundAndHeadersAloneFindNone) {
  policy.keep = 2;
  for (const Verify verify : {Verify::headers, Verify::all}) {
    policy.verify = verify;
    put(commit(1, 10, "a"));
    put(commit(2, 11, "b"));
    damage(0, 1);
    EXPECT_EQ(open(latest)->commit.tag, "b");
    EXPECT_EQ(ledgers[1].known().entries.size(), verify == Verify::all ? 1U : 2U);
  }
}

TEST_F(RecoveryLoop, WithoutAnOpenOnlyTheLedgerLearnsAndDamageIsFoundToo) {
  put(commit(1, 10, "a"));
  put(commit(2, 11, "b"));
  damage(0, 2);
  tiers[0].unreachable = true;
  run_well([&](RankOfJob& rank) { make(rank).survey_only(); });
  ASSERT_EQ(ledgers[0].known().entries.size(), 1U);
  EXPECT_EQ(ledgers[0].known().entries[0].commit.tag, "a");
  policy.verify = Verify::headers;
  run_well([&](RankOfJob& rank) { make(rank).survey_only(); });
  EXPECT_EQ(ledgers[0].known().entries.size(), 2U);
}

TEST_F(RecoveryLoop, WhatFailsIsLookedAtAgainAndAfterASecondFailureExcluded) {
  put(commit(1, 10, "a"));
  publish(commit(2, 11, "b"));  // its containers cannot be fetched
  put_witness();
  std::uint64_t before = bytes_read_of_witness();
  run_well([&](RankOfJob& rank) {
    Recovery recovery = make(rank);
    const auto opened = recovery.open(latest, Newer::keep);
    ASSERT_TRUE(opened);
    EXPECT_EQ(opened->commit.tag, "a");
  });
  EXPECT_EQ(tiers[0].opens, 3) << "after the first look, and twice after every byte was read";
  EXPECT_THAT(ledgers[1].excluded().reason(id_of(2)), HasSubstr("it could not be recovered"));
  EXPECT_TRUE(logged("b (generation 11) could not be recovered"));
  EXPECT_TRUE(logged("skipped b (generation 11): it could not be recovered"));
  const std::uint64_t four_looks = bytes_read_of_witness() - before;
  before = bytes_read_of_witness();
  EXPECT_EQ(open(latest)->commit.tag, "a");
  EXPECT_EQ(four_looks, 4 * (bytes_read_of_witness() - before));
}

TEST_F(RecoveryLoop, ARankThatDoesNotSeeTheManifestIsAFailureAndNoOlderCommitAnAnswer) {
  put(commit(1, 10, "a"));
  publish(commit(2, 11, "b"));
  tiers[1].sees_manifests = false;
  const Failure failure = failure_of_open(latest);
  EXPECT_EQ(failure.code, ErrorCode::io);
  EXPECT_THAT(failure.message, HasSubstr("does not see the manifest"));
  EXPECT_EQ(failure.rank, 1);
  EXPECT_TRUE(ledgers[0].excluded().reason(id_of(2)).empty());
}

TEST_F(RecoveryLoop, NewerOnesAreRecordedAsDiscardedBeforeTheOlderOneIsReturned) {
  const CommitHead a = commit(1, 10, "a");
  const CommitHead b = commit(2, 11, "b");
  const CommitHead c = commit(3, 12, "c");
  CommitHead strange = commit(4, 13, "d");
  strange.run_id = id_of(50);
  for (const CommitHead& head : {a, b}) put(head);
  for (const CommitHead& head : {c, strange}) publish(head);
  EXPECT_EQ(open(Tag{"a"})->commit.tag, "a");
  EXPECT_FALSE(is_discarded(b));
  EXPECT_EQ(open(Tag{"a"}, Newer::discard)->commit.tag, "a");
  EXPECT_FALSE(is_discarded(a));
  EXPECT_TRUE(is_discarded(b));
  EXPECT_TRUE(is_discarded(c)) << "not among the candidates of this selection";
  EXPECT_FALSE(is_discarded(strange));
  for (const auto& ledger : ledgers) {
    ASSERT_EQ(ledger.known().entries.size(), 1U);
    EXPECT_EQ(ledger.known().entries[0].commit.tag, "a");
  }
  EXPECT_EQ(open(latest)->commit.tag, "a");
}

TEST_F(RecoveryLoop, NothingIsLeftBehindThatCouldNotBeRecordedAsDiscarded) {
  put(commit(1, 10, "a"));
  put(commit(2, 11, "b"));
  on_records_opened = [&] {
    faults::Volume full;
    full.write_errno = 28;  // ENOSPC
    disk.set_volume("/prefix", full);
  };
  for (const auto& outcome : run_ranks([&](RankOfJob& rank) { (void)make(rank).open(Tag{"a"}, Newer::discard); })) {
    EXPECT_TRUE(outcome.failure);
  }
  for (const auto& ledger : ledgers) {
    ASSERT_EQ(ledger.known().entries.size(), 2U);
    EXPECT_EQ(ledger.known().entries[0].commit.tag, "b");
  }
}

/// The checksum in the manifest says nothing of the superblock, and that was looked at before the copy was made.
TEST_F(RecoveryLoop, WhatIsFetchedIsTheContainerOfJustThisRankAndCommit) {
  const CommitHead head = commit(2, 11, "b");
  put(commit(1, 10, "a"));
  publish(head);
  CommitHead other = head;
  other.id = id_of(3);
  CommitHead later = head;
  ++later.generation;
  const auto fetch = [&](const CommitHead& found, std::uint32_t shift) {
    for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
      tiers[rank].containers[rank] = persist::testing::container_bytes(found, (rank + shift) % kRanks);
    }
    ledgers = std::vector<commits::Ledger>(kRanks);
    return open(latest);
  };
  EXPECT_EQ(fetch(other, 0)->commit.tag, "a");
  EXPECT_EQ(fetch(later, 0)->commit.tag, "a");
  EXPECT_EQ(fetch(head, 1)->commit.tag, "a");
  const auto opened = fetch(head, 0);
  EXPECT_EQ(opened->commit.tag, "b");
  EXPECT_EQ(opened->mine.source, RecoverySource::fetched);
  EXPECT_EQ(opened->totals.fetched, std::uint64_t{kRanks});
  EXPECT_EQ(opened->totals.bytes, tiers[0].containers[0].size() + tiers[1].containers[1].size());
}

TEST_F(RecoveryLoop, WhatIsLostIsUnrecoverableInWordsAndOnlyAllOfItMakesTheRunLost) {
  put(commit(1, 10, "a"), {0});
  publish(commit(2, 11, "b"));
  EXPECT_FALSE(open(Tag{"c"}));
  const Failure failure = failure_of_open(Tag{"a"});
  EXPECT_EQ(failure.code, ErrorCode::unrecoverable);
  EXPECT_THAT(failure.message,
              testing::AllOf(HasSubstr("run 'run' has commits, but 'a' cannot be recovered: a (generation 10): the "
                                       "container of rank 1 is missing"),
                             HasSubstr("Bring back the nodes that held it")));
  EXPECT_FALSE(ledgers[0].known().lost);
  for (FakeTier& prefix_storage : tiers) prefix_storage.published.clear();
  EXPECT_EQ(failure_of_open(latest).code, ErrorCode::unrecoverable);
  for (const auto& ledger : ledgers) EXPECT_TRUE(ledger.known().lost);
}

TEST_F(RecoveryLoop, AContainerOfWhichNotEvenTheTagIsKnownIsToldOnce) {
  const std::string by_itself = "skipped an unreadable container";
  put(commit(1, 10, "a"));
  put(commit(2, 11, "b"), {1});
  put(commit(3, 12, "c"));
  disk.flip_bit(path_of(1, 3), 100);
  EXPECT_EQ(open(latest)->commit.tag, "a");
  EXPECT_TRUE(logged("skipped c (generation 12): the container of rank 1 is missing: found instead: "));
  EXPECT_TRUE(logged("skipped b (generation 11)"));
  EXPECT_FALSE(logged(by_itself));
  disk.remove_all(path_of(0, 3));
  EXPECT_EQ(open(latest)->commit.tag, "a");
  EXPECT_TRUE(logged(by_itself));
}

TEST_F(RecoveryLoop, WhatAnotherRankCountSavedAsksForThatCount) {
  other_ranks = OtherRanks::refuse;
  put(commit(1, 10, "a", 5));
  const Failure failure = failure_of_open(latest);
  EXPECT_THAT(failure.message, HasSubstr("Start it with as many ranks as saved it"));
}

TEST_F(RecoveryLoop, WhatLiesInPlaceIsCountedAsSuch) {
  put(commit(1, 10, "a"));
  const auto opened = open(latest);
  ASSERT_TRUE(opened);
  EXPECT_EQ(opened->mine.source, RecoverySource::in_place);
  EXPECT_EQ(opened->totals.moved + opened->totals.rebuilt + opened->totals.fetched + opened->totals.bytes, 0U);
  EXPECT_GT(opened->total_bytes, 800'000U);
  EXPECT_FALSE(opened->persistent);
}

/// Sends another file's first 4096 bytes in place of what it is given.
class LyingSender final : public testing::ForwardingCommunicator {
 public:
  LyingSender(Communicator& inner, std::vector<std::byte> head)
      : ForwardingCommunicator(inner), head_(std::move(head)) {}
  Request send(int to, int channel, std::span<const std::byte> bytes) override {
    if (channel != comm::channel::kRelocate || !first_piece_.empty()) {
      return ForwardingCommunicator::send(to, channel, bytes);
    }
    first_piece_.assign(bytes.begin(), bytes.end());
    std::ranges::copy(head_, first_piece_.begin());
    return ForwardingCommunicator::send(to, channel, first_piece_);
  }

 private:
  std::vector<std::byte> head_;
  std::vector<std::byte> first_piece_;
};

/// As after every transfer: whole is not enough, and the checksum of a container says nothing of its first bytes.
TEST_F(RecoveryTest, WhatArrivesWhenAFileMovesIsTheFileOfJustThisRankAndCommit) {
  const CommitHead head = commit(1, 10, "a");
  CommitHead later = head;
  ++later.generation;
  put(head);
  put(commit(2, 10, "a"));
  const auto head_of = [&](int rank, std::uint8_t number) {
    auto bytes = disk.read_all(path_of(rank, number));
    bytes.resize(format::kSuperblockBytes);
    return bytes;
  };
  const auto right = head_of(0, 1);
  const auto of_another_rank = head_of(1, 1);
  const auto of_another_commit = head_of(0, 2);
  put(later, {0});
  const auto of_another_generation = head_of(0, 1);
  put(head, {0});
  // Rank 0's container lies in the store of process 1.
  const std::string path = path_of(0, 1);
  disk.write_all("/store-1" + path.substr(path.rfind('/')), disk.read_all(path));
  disk.remove_all(path);
  const std::uint64_t size_bytes = disk.read_all(path_of(1, 1)).size();
  const MoveOrder order{store::FileKind::container, LogicalRank{0}, {head.id, {}}, 10, size_bytes, 1, 0};
  for (const auto& sent : {of_another_rank, of_another_commit, of_another_generation, right}) {
    const auto outcomes = run_ranks([&](RankOfJob& rank) {
      rank.group.run_on_all_ranks([&] { (void)rank.store.files.scan(run.id, Verify::headers); });
      LyingSender sender(rank.group.communicator(), sent);
      Recovered recovered;
      relocate(comm::Group(sender, std::chrono::seconds(60)), rank.store, std::vector{order},
               {false, {}, head, &rank.prefix_storage, {}}, recovered);
      EXPECT_EQ(recovered.source == RecoverySource::moved, rank.is_root());
    });
    for (const auto& outcome : outcomes) {
      EXPECT_EQ(outcome.returned(), sent == right);
      if (sent != right && outcome.failure) {
        EXPECT_EQ(outcome.failure->code, ErrorCode::corrupt) << to_string(*outcome.failure);
      }
    }
  }
}

}  // namespace
}  // namespace kedge::recovery::recovery_test
