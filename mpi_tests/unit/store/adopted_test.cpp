// Files of ranks that do not run on this node: shared out, told of, read, and removed when nobody needs them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>

#include "kedge/error.hpp"
#include "unit/store/store_fixture.hpp"

namespace kedge::faults::adopted_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::uint64_t kBytes = 65'536;

class Adopting : public StoreFiles {
 protected:
  /// Ranks that ran here in an earlier start left one file of each kind each.
  void leave_files_of(const std::vector<int>& ranks, std::uint8_t commit = 1) {
    for (const int rank : ranks) {
      for (const FileKind kind : kAllKinds) put(*open_store(rank), kind, rank, commit);
    }
  }
};
INSTANTIATE_TEST_SUITE_P(Kinds, Adopting, testing::Bool(),
                         [](const auto& kind) { return kind.param ? "memory" : "block"; });

TEST_P(Adopting, NothingWithoutBeingPutInCharge) {
  leave_files_of({5});
  const auto own = open_store(0);
  EXPECT_THAT(scanned(*own), IsEmpty());
  own->retirement.retire_all_but(only({}));
  own->remove_all_files();
  EXPECT_TRUE(exists("rank-5.0.h5"));
}

TEST_P(Adopting, EveryFileIsToldOfByExactlyOneProcessOfTheNode) {
  const std::vector<int> left = {0, 1, 2, 3, 4, 5, 6, 7, 9, 40, 41};
  leave_files_of(left);
  for (const std::vector<int>& here : {std::vector<int>{2}, {0, 1}, {3, 6, 7}, {1, 4, 9, 60, 61}, {20, 30, 50}}) {
    std::map<std::string, int> told;
    for (const int rank : here) {
      const auto own = open_store(rank, here);
      for (const auto& held : own->files.scan(run_id, Verify::all)) {
        EXPECT_TRUE(held.intact) << held.damage;
        const auto whose = static_cast<int>(held.logical_rank.value);
        if (std::find(here.begin(), here.end(), whose) != here.end()) {
          EXPECT_EQ(whose, rank) << "a process tells of its own files, the others do not";
        } else {
          EXPECT_EQ(here.at(held.logical_rank.value % here.size()), rank);
        }
        ++told[held.path];
      }
    }
    EXPECT_EQ(told.size(), 3 * left.size());
    for (const auto& [path, times] : told) EXPECT_EQ(times, 1) << path;
  }
}

TEST_P(Adopting, AListWithoutThisRankOrOutOfOrderIsRefused) {
  EXPECT_NO_THROW((void)open_store(1, {0, 1}));
  EXPECT_THROW((void)open_store(1, {0, 2}), Error);
  EXPECT_THROW((void)open_store(1, {1, 0}), Error);
  EXPECT_THROW((void)open_store(1, {1, 1}), Error);
}

TEST_P(Adopting, TheyAreVerifiedLikeOwnOnes) {
  leave_files_of({5});
  disk.flip_bit("/store/parity-5.0.kedge", 9000);
  disk.flip_bit("/store/rank-5.0.h5", 5000);
  disk.write_all("/store/rank-6.0.h5", disk.read_all("/store/rank-5.0.h5"));
  const auto own = open_store(0, {0});
  const auto found = own->files.scan(run_id, Verify::all);
  ASSERT_EQ(found.size(), 4U);
  EXPECT_THAT(found[0].damage, HasSubstr("rank-5.0.h5"));
  EXPECT_THAT(found[1].damage, HasSubstr("it is the container of rank 5"));
  EXPECT_THAT(found[2].damage, HasSubstr("its parity is damaged"));
  EXPECT_TRUE(found[3].intact);
  EXPECT_THROW((void)own->files.pin(FileKind::container, LogicalRank{5}, key_of(FileKind::container, 1)), Error);
  EXPECT_THROW((void)own->files.pin(FileKind::container, LogicalRank{6}, key_of(FileKind::container, 1)), Error);
}

TEST_P(Adopting, TheyAreReadWhilePinnedAndNeverWrittenOrGivenUp) {
  leave_files_of({5});
  const auto before = disk.snapshot();
  const auto own = open_store(0, {0});
  (void)own->files.scan(run_id, Verify::all);
  for (const FileKind kind : kAllKinds) {
    store::StoreFile& pinned = own->files.pin(kind, LogicalRank{5}, key_of(kind, 1));
    std::vector<std::byte> bytes(pinned.size_bytes());
    (void)pinned.bytes().read_with_crc(0, bytes, 0);
    EXPECT_EQ(bytes, disk.read_all(pinned.path()));
    EXPECT_THROW(own->new_files.discard_file(pinned), Error);
    EXPECT_THROW(own->new_files.mark_sealed(pinned, key_of(kind, 2), 2), Error);
    for (std::uint8_t commit = 2; commit <= 4; ++commit) put(*own, kind, 0, commit);
    own->files.unpin(pinned);
    EXPECT_THROW(own->files.unpin(pinned), Error);
  }
  const auto after = disk.snapshot();
  for (const auto& [path, entry] : before) EXPECT_EQ(after.at(path).bytes, entry.bytes) << path;
}

TEST_P(Adopting, RetiredOnesAreRemovedUnlessPinned) {
  leave_files_of({5}, 1);
  leave_files_of({6}, 2);
  disk.write_all("/store/rank-7.0.h5", std::vector<std::byte>(8192));  // unsealed: its owner died while it wrote
  const auto own = open_store(0, {0});
  (void)own->files.scan(run_id, Verify::all);
  store::StoreFile& pinned = own->files.pin(FileKind::container, LogicalRank{5}, key_of(FileKind::container, 1));
  own->retirement.retire_all_but(only({key_of(FileKind::container, 2)}));
  EXPECT_THAT(scanned(*own), ElementsAre("rank-5.0.h5", "rank-6.0.h5"));
  own->files.unpin(pinned);
  own->retirement.retire_all_but(only({key_of(FileKind::container, 2)}));
  EXPECT_THAT(scanned(*own), ElementsAre("rank-6.0.h5"));
  EXPECT_EQ(own->slots.all_slots().size(), 1U);
}

TEST_P(Adopting, WhatWasNotLookedAtIsNotRemoved) {
  leave_files_of({5});
  const auto own = open_store(0, {0});
  own->retirement.retire_all_but(only({}));
  EXPECT_EQ(scanned(*own).size(), 3U);
}

TEST_P(Adopting, DropRemovesTheFilesOfOneCommitAndNoOwnOnes) {
  leave_files_of({0}, 1);
  {
    const auto earlier = open_store(5);
    for (const FileKind kind : kAllKinds) {
      put(*earlier, kind, 5, 1);
      put(*earlier, kind, 5, 2);
    }
  }
  const auto own = open_store(0, {0});
  (void)own->files.scan(run_id, Verify::all);
  EXPECT_EQ(own->retirement.remove_adopted(id_of(1)), 3U);
  EXPECT_EQ(own->retirement.remove_adopted(id_of(1)), 0U);  // own ones stay
  EXPECT_THAT(scanned(*own), ElementsAre("rank-0.0.h5", "parity-0.0.kedge", "set-0.0.kedge", "rank-5.1.h5",
                                         "parity-5.1.kedge", "set-5.1.kedge"));
}

TEST_P(Adopting, APinnedOneIsNotDropped) {
  leave_files_of({5});
  const auto own = open_store(0, {0});
  (void)own->files.scan(run_id, Verify::all);
  store::StoreFile& pinned = own->files.pin(FileKind::parity, LogicalRank{5}, key_of(FileKind::parity, 1));
  (void)own->retirement.remove_adopted(id_of(1));
  EXPECT_TRUE(exists("parity-5.0.kedge"));
  own->files.unpin(pinned);
  (void)own->retirement.remove_adopted(id_of(1));
  EXPECT_FALSE(exists("parity-5.0.kedge"));
}

TEST_P(Adopting, WhatIsNotThisUsersIsLeftAlone) {
  leave_files_of({5});
  auto status = disk.snapshot().at("/store/rank-5.0.h5").status;
  status.owner = 0;
  disk.plant("/store/rank-5.0.h5", status);
  disk.plant_link("/store/rank-6.0.h5", "/store/rank-5.0.h5");
  const auto own = open_store(0, {0});
  const auto found = own->files.scan(run_id, Verify::all);
  ASSERT_EQ(found.size(), 4U);
  EXPECT_THAT(found[0].damage, HasSubstr("not a regular file of this user"));
  EXPECT_THAT(found[1].damage, HasSubstr("not a regular file of this user"));
  own->retirement.retire_all_but(only({}));
  own->remove_all_files();
  EXPECT_TRUE(exists("rank-5.0.h5"));
  EXPECT_TRUE(exists("rank-6.0.h5"));
  EXPECT_FALSE(exists("set-5.0.kedge"));
}

TEST_P(Adopting, TheyCountAsUsedButNotTowardsTheQuota) {
  leave_files_of({5});
  const std::uint64_t left = disk.used_bytes("/store");
  options.quota_bytes = format::kSuperblockBytes;
  const auto own = open_store(0, {0});
  (void)own->files.scan(run_id, Verify::all);
  EXPECT_EQ(own->slots.used_bytes(), left);
  EXPECT_EQ(own->node_bytes(), 0U);
  EXPECT_NO_THROW(put(*own, FileKind::descriptor, 0, 1));
  EXPECT_EQ(own->slots.used_bytes(), disk.used_bytes("/store"));
}

TEST_P(Adopting, RemoveAllTakesThisProcesssShareAlone) {
  leave_files_of({4, 5});
  open_store(0, {0, 1})->remove_all_files();  // rank 1 has rank 5's
  EXPECT_THAT(scanned(*open_store(4)), IsEmpty());
  EXPECT_EQ(scanned(*open_store(5)).size(), 3U);
}

TEST_P(Adopting, WhatIsGoneIsNotToldOfAnyMore) {
  leave_files_of({5});
  const auto own = open_store(0, {0});
  (void)own->files.scan(run_id, Verify::all);
  disk.remove_all("/store/rank-5.0.h5");
  EXPECT_THAT(scanned(*own), ElementsAre("parity-5.0.kedge", "set-5.0.kedge"));
  disk.remove_all("/store/parity-5.0.kedge");  // between scan and pin
  EXPECT_THROW((void)own->files.pin(FileKind::parity, LogicalRank{5}, key_of(FileKind::parity, 1)), Error);
}

TEST_P(Adopting, AnOwnerThatComesBackReusesItsFiles) {
  leave_files_of({5});
  const auto back = open_store(5, {0, 5});
  EXPECT_EQ(scanned(*back).size(), 3U);
  back->retirement.retire_all_but(only({}));
  EXPECT_EQ(put(*back, FileKind::parity, 5, 2).path(), "/store/parity-5.0.kedge");
}

TEST_P(Adopting, AFileOfAnAdoptedRankCanBeMade) {
  leave_files_of({5});
  const auto own = open_store(0, {0});
  (void)own->files.scan(run_id, Verify::all);
  store::StoreFile& file = own->new_files.begin_file({FileKind::container, kBytes, LogicalRank{5}});
  EXPECT_THAT(scanned(*own), ElementsAre("rank-5.0.h5", "parity-5.0.kedge", "set-5.0.kedge")) << "it is not sealed";
  own->retirement.retire_all_but(only({key_of(FileKind::container, 1)}));
  EXPECT_TRUE(exists("rank-5.1.h5")) << "a file that is being written stays";
  write_container(file, 5, 2);
  own->new_files.mark_sealed(file, key_of(FileKind::container, 2), 2);
  EXPECT_TRUE(own->files.has_file(FileKind::container, LogicalRank{5}, key_of(FileKind::container, 2)));
  EXPECT_TRUE(own->files.has_file(FileKind::container, LogicalRank{5}, key_of(FileKind::container, 1)));
  own->retirement.retire_all_but(only({key_of(FileKind::container, 2)}));
  EXPECT_FALSE(exists("rank-5.0.h5"));
  const auto later = open_store(5, {5});  // the rank comes back: it is one of its own
  (void)later->files.scan(run_id, Verify::all);
  EXPECT_TRUE(later->files.has_file(FileKind::container, LogicalRank{5}, key_of(FileKind::container, 2)));
}

TEST_P(Adopting, TheNameOfAFileThatIsMadeOutlivesAPowerLoss) {
  if (GetParam()) GTEST_SKIP() << "memory is empty after a power loss";
  options.durable = true;
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    {
      const auto own = open_store(0, {0});
      (void)own->new_files.begin_file({FileKind::container, kBytes, LogicalRank{5}});
    }
    disk.restart(Crash::power, seed);
    EXPECT_TRUE(exists("rank-5.0.h5")) << "seed " << seed;
    disk.remove_all("/store/rank-5.0.h5");
  }
}

TEST_P(Adopting, AMissingOneIsNoLossOfThisStore) {
  leave_files_of({5});
  const auto own = open_store(0, {0});
  put(*own, FileKind::container, 0, 1);
  (void)own->files.scan(run_id, Verify::all);
  disk.remove_all("/store/rank-5.0.h5");
  EXPECT_FALSE(own->files.has_missing_files());
  disk.remove_all("/store/rank-0.0.h5");
  EXPECT_TRUE(own->files.has_missing_files());
}

TEST_P(Adopting, AFileThatWasMadeIsNeverWrittenAgain) {
  const auto own = open_store(0, {0});
  store::StoreFile& file = own->new_files.begin_file({FileKind::container, kBytes, LogicalRank{5}});
  write_container(file, 5, 1);
  own->new_files.mark_sealed(file, key_of(FileKind::container, 1), 1);
  EXPECT_THROW(own->new_files.mark_sealed(file, key_of(FileKind::container, 1), 1), Error);
  EXPECT_THROW(own->new_files.discard_file(file), Error);
  (void)own->new_files.begin_file({FileKind::container, kBytes, LogicalRank{5}});
  EXPECT_TRUE(exists("rank-5.1.h5"));
  own->retirement.retire_all_but(only({}));
  EXPECT_FALSE(exists("rank-5.0.h5"));
}

TEST_P(Adopting, AFileThatIsGivenUpIsRemoved) {
  const auto own = open_store(0, {0});
  store::StoreFile& file = own->new_files.begin_file({FileKind::parity, kBytes, LogicalRank{5}});
  EXPECT_TRUE(exists("parity-5.0.kedge"));
  own->new_files.discard_file(file);
  EXPECT_FALSE(exists("parity-5.0.kedge"));
  EXPECT_TRUE(own->slots.all_slots().empty());
}

TEST_P(Adopting, OnlyTheProcessInChargeOfARankMakesItsFiles) {
  const auto own = open_store(0, {0, 1});
  EXPECT_THROW((void)own->new_files.begin_file({FileKind::container, kBytes, LogicalRank{5}}), Error)
      << "rank 1 is in charge of it";
  EXPECT_THROW((void)own->new_files.begin_file({FileKind::container, kBytes, LogicalRank{1}}), Error) << "it runs here";
  EXPECT_NO_THROW((void)own->new_files.begin_file({FileKind::container, kBytes, LogicalRank{4}}));
  EXPECT_NO_THROW((void)own->new_files.begin_file({FileKind::container, kBytes, LogicalRank{0}}));
}

TEST_P(Adopting, FilesThatAreMadeCountTowardsTheQuota) {
  options.quota_bytes = 3 * kBytes / 2;
  const auto own = open_store(0, {0});
  EXPECT_NO_THROW((void)own->new_files.begin_file({FileKind::container, kBytes, LogicalRank{5}}));
  EXPECT_THROW((void)own->new_files.begin_file({FileKind::container, kBytes}), Error);
  EXPECT_THROW((void)own->new_files.begin_file({FileKind::container, kBytes, LogicalRank{6}}), Error);
  EXPECT_FALSE(exists("rank-6.0.h5"));
}

TEST_P(Adopting, FilesThatAreGoingToBeMadeNeedNewStorageWhateverIsIdle) {
  const auto own = open_store(0, {0});
  own->new_files.discard_file(own->new_files.begin_file({FileKind::container, kBytes}));
  own->new_files.preallocate(FileKind::container, kBytes, {});
  const store::PlannedFile mine{FileKind::container, kBytes, LogicalRank{0}};
  const store::PlannedFile of_another{FileKind::container, kBytes, LogicalRank{5}};
  EXPECT_EQ(own->new_files.additional_bytes(std::array{mine}), 0U) << "the idle file has room for it";
  EXPECT_EQ(own->new_files.additional_bytes(std::array{of_another}), kBytes);
  EXPECT_EQ(own->new_files.additional_bytes(std::array{mine, of_another}), kBytes);
}

}  // namespace
}  // namespace kedge::faults::adopted_test
