// Containers, parity and set descriptors of one rank on the store: reused in turn, verified, counted, durable, and
// refused with the space needed and free.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/attempt.hpp"
#include "kedge/error.hpp"
#include "unit/store/store_fixture.hpp"

namespace kedge::faults::files_test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

INSTANTIATE_TEST_SUITE_P(Kinds, StoreFiles, testing::Bool(),
                         [](const auto& kind) { return kind.param ? "memory" : "block"; });

TEST_P(StoreFiles, EachKindUsesTwoFilesInTurn) {
  const auto own = open_store(3);
  for (std::uint8_t commit = 1; commit <= 5; ++commit) {
    std::set<FileKey> keep;
    for (const FileKind kind : kAllKinds) {
      put(*own, kind, 3, commit);
      EXPECT_LE(own->slots.own_slots(kind).size(), 2U);
      keep.insert(key_of(kind, commit));
    }
    own->retirement.retire_all_but(only(keep));
  }
  EXPECT_THAT(scanned(*own), ElementsAre("rank-3.0.h5", "rank-3.1.h5", "parity-3.0.kedge", "parity-3.1.kedge",
                                         "set-3.0.kedge", "set-3.1.kedge"));
}

TEST_P(StoreFiles, AScanOfALaterStartFindsWhatWasSealed) {
  for (const FileKind kind : kAllKinds) put(*open_store(3), kind, 3, 9, 4);
  const auto own = open_store(3);
  const auto found = own->files.scan(run_id, Verify::all);
  ASSERT_EQ(found.size(), 3U);
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i].kind, kAllKinds[i]);
    EXPECT_EQ(found[i].logical_rank, LogicalRank{3});
    EXPECT_TRUE(found[i].intact) << found[i].damage;
    EXPECT_EQ(found[i].key(), key_of(kAllKinds[i], 9, 4));
    EXPECT_EQ(found[i].superblock.has_value(), kAllKinds[i] == FileKind::container);
    EXPECT_NE(found[i].set_descriptor.has_value(), kAllKinds[i] == FileKind::container);
    EXPECT_NO_THROW(own->files.unpin(own->files.pin(kAllKinds[i], LogicalRank{3}, key_of(kAllKinds[i], 9, 4))));
  }
}

TEST_P(StoreFiles, ProtectingAgainLeavesTheOldProtectionUntilItIsRetired) {
  const auto own = open_store(0);
  for (const FileKind kind : {FileKind::parity, FileKind::descriptor}) {
    put(*own, kind, 0, 1, 1);
    const std::string renewed = put(*own, kind, 0, 1, 2).path();
    for (const std::uint8_t protection : {std::uint8_t{1}, std::uint8_t{2}}) {
      store::StoreFile& file = own->files.pin(kind, LogicalRank{0}, key_of(kind, 1, protection));
      EXPECT_EQ(file.path() == renewed, protection == 2);
      own->files.unpin(file);
    }
    own->retirement.retire_all_but(only({key_of(kind, 1, 2)}));
    EXPECT_NE(put(*own, kind, 0, 1, 3).path(), renewed) << "the older protection's file is the one to reuse";
    EXPECT_EQ(own->slots.own_slots(kind).size(), 2U);
    EXPECT_THROW((void)own->files.pin(kind, LogicalRank{0}, key_of(kind, 1, 1)), Error);
    EXPECT_NO_THROW(own->files.unpin(own->files.pin(kind, LogicalRank{0}, key_of(kind, 1, 2))));
  }
}

TEST_P(StoreFiles, OfSeveralRetiredOnesTheNewestStays) {
  for (const FileKind kind : kAllKinds) {
    const auto own = open_store(0);
    std::set<FileKey> keep;
    for (std::uint8_t commit = 1; commit <= 4; ++commit) {
      put(*own, kind, 0, commit);
      keep.insert(key_of(kind, commit));
      own->retirement.retire_all_but(only(keep));
    }
    own->retirement.retire_all_but(only({key_of(kind, 4)}));
    EXPECT_EQ(own->slots.own_slots(kind).size(), 2U);
    EXPECT_TRUE(own->files.has_file(kind, LogicalRank{0}, key_of(kind, 3)));
    own->remove_all_files();
  }
}

TEST_P(StoreFiles, AnIntactRetiredOneStaysRatherThanANewerThatIsDamaged) {
  for (const FileKind kind : {FileKind::container, FileKind::parity}) {
    std::string newer;
    {
      const auto before = open_store(0);
      for (std::uint8_t commit = 1; commit <= 3; ++commit) {
        const std::string path = put(*before, kind, 0, commit).path();
        if (commit == 2) newer = path;
      }
    }
    disk.flip_bit(newer, format::kSuperblockBytes + 1000);
    const auto own = open_store(0);
    static_cast<void>(own->files.scan(run_id, Verify::all));
    own->retirement.retire_all_but(only({key_of(kind, 3)}));
    EXPECT_TRUE(own->files.has_file(kind, LogicalRank{0}, key_of(kind, 1)));
    own->remove_all_files();
  }
}

TEST_P(StoreFiles, ADamagedFileIsNotKeptBesideTheOneMadeAgain) {
  for (const FileKind kind : kAllKinds) {
    const std::string path = put(*open_store(0), kind, 0, 1).path();
    disk.flip_bit(path, kind == FileKind::descriptor ? 300 : format::kSuperblockBytes + 1000);
    const auto own = open_store(0);
    ASSERT_FALSE(own->files.scan(run_id, Verify::all).front().intact);
    EXPECT_NE(put(*own, kind, 0, 1).path() == path, kind != FileKind::descriptor)
        << "of a damaged descriptor not even the key is known: it is free";
    own->retirement.retire_all_but(only({key_of(kind, 1)}));
    EXPECT_EQ(put(*own, kind, 0, 2).path() == path, kind != FileKind::descriptor);
    EXPECT_EQ(own->slots.own_slots(kind).size(), 2U);
    own->remove_all_files();
  }
}

TEST_P(StoreFiles, APinnedFileIsNotReusedAndPinsAreCounted) {
  const auto own = open_store(0);
  const std::string path = put(*own, FileKind::parity, 0, 1).path();
  store::StoreFile& pinned = own->files.pin(FileKind::parity, LogicalRank{0}, key_of(FileKind::parity, 1));
  ASSERT_EQ(&own->files.pin(FileKind::parity, LogicalRank{0}, key_of(FileKind::parity, 1)), &pinned);
  own->retirement.retire_all_but(only({}));
  own->files.unpin(pinned);
  EXPECT_NE(put(*own, FileKind::parity, 0, 2).path(), path) << "it is pinned once more";
  own->files.unpin(pinned);
  EXPECT_EQ(put(*own, FileKind::parity, 0, 3).path(), path);
  EXPECT_THROW(own->files.unpin(pinned), Error);
}

TEST_P(StoreFiles, UnsealedAndEmptyFilesAreNoDamage) {
  {
    const auto own = open_store(0);
    for (const FileKind kind : kAllKinds) {
      begin(*own, kind, 0, 1).unseal();  // dies here
      own->new_files.discard_file(begin(*own, kind, 0, 2));
    }
  }
  const auto found = open_store(0)->files.scan(run_id, Verify::all);
  EXPECT_EQ(found.size(), 6U);
  for (const auto& held : found) {
    EXPECT_EQ(held.damage, "");
    EXPECT_FALSE(held.intact);
    EXPECT_FALSE(held.key());
  }
}

struct Corruption {
  const char* what;
  std::function<void(FaultyDisk&, const std::string& path)> strike;
  const char* damage;
};

TEST_P(StoreFiles, EveryHarmToParityIsFound) {
  const Corruption harms[] = {
      {"a flipped bit", [](FaultyDisk& d, const std::string& path) { d.flip_bit(path, 4096 + 7777); }, "damaged"},
      {"the last byte", [](FaultyDisk& d, const std::string& path) { d.flip_bit(path, 4096 + 9999); }, "damaged"},
      {"a flipped header", [](FaultyDisk& d, const std::string& path) { d.flip_bit(path, 40); }, "damaged"},
      {"cut", [](FaultyDisk& d, const std::string& path) { d.truncate_from_outside(path, 4096 + 5000); },
       "9096 bytes instead of 14096"},
      {"longer", [](FaultyDisk& d, const std::string& path) { d.truncate_from_outside(path, 20000); },
       "20000 bytes instead of 14096"},
      {"nearly nothing left", [](FaultyDisk& d, const std::string& path) { d.truncate_from_outside(path, 100); },
       "too short for a parity"},
      {"a descriptor instead",
       [](FaultyDisk& d, const std::string& path) { d.write_all(path, d.read_all("/store/set-0.0.kedge")); },
       "not a parity, as its name says"},
      {"another rank's", [](FaultyDisk& d, const std::string& path) { d.write_all(path, d.read_all("/store/other")); },
       "it is the parity of rank 5"},
  };
  disk.write_all("/store/other", disk.read_all(put(*open_store(5), FileKind::parity, 5, 1).path()));
  put(*open_store(0), FileKind::descriptor, 0, 1);
  const std::string path = put(*open_store(0), FileKind::parity, 0, 1).path();
  const auto whole = disk.read_all(path);
  for (const Corruption& harm : harms) {
    disk.truncate_from_outside(path, whole.size());
    disk.write_all(path, whole);
    harm.strike(disk, path);
    const auto own = open_store(0);
    const auto found = own->files.scan(run_id, Verify::all);
    ASSERT_EQ(found.size(), 2U) << harm.what;
    EXPECT_FALSE(found[0].intact) << harm.what;
    EXPECT_THAT(found[0].damage, AllOf(HasSubstr(path), HasSubstr(harm.damage))) << harm.what;
    EXPECT_THROW((void)own->files.pin(FileKind::parity, LogicalRank{0}, key_of(FileKind::parity, 1)), Error)
        << harm.what;
  }
}

TEST_P(StoreFiles, WithHeadersAloneParityIsLookedAtByHeaderAndSize) {
  const std::string path = put(*open_store(0), FileKind::parity, 0, 1).path();
  disk.flip_bit(path, 4096 + 7777);
  EXPECT_TRUE(open_store(0)->files.scan(run_id, Verify::headers).front().intact);
  disk.truncate_from_outside(path, 4096 + 5000);
  EXPECT_FALSE(open_store(0)->files.scan(run_id, Verify::headers).front().intact);
}

TEST_P(StoreFiles, HarmToADescriptorIsFound) {
  const std::string path = put(*open_store(0), FileKind::descriptor, 0, 1).path();
  disk.truncate_from_outside(path, 8192);
  EXPECT_THAT(open_store(0)->files.scan(run_id, Verify::headers).front().damage,
              HasSubstr("8192 bytes instead of 4096"));
  disk.truncate_from_outside(path, 4096);
  EXPECT_TRUE(open_store(0)->files.scan(run_id, Verify::headers).front().intact);
  disk.flip_bit(path, 300);
  EXPECT_FALSE(open_store(0)->files.scan(run_id, Verify::headers).front().intact);
}

TEST_P(StoreFiles, FilesOfAnotherRunAreDamageThatTellsWhichCommitTheyAreOf) {
  for (const FileKind kind : kAllKinds) put(*open_store(0), kind, 0, 1);
  const auto own = open_store(0);
  for (const auto& held : own->files.scan(id_of(0x78), Verify::all)) {
    EXPECT_FALSE(held.intact);
    EXPECT_THAT(held.damage, HasSubstr("it belongs to another run"));
    EXPECT_EQ(held.key(), key_of(held.kind, 1));
  }
}

TEST_P(StoreFiles, TheQuotaIsForAllKindsTogether) {
  const auto own = open_store(0);
  put(*own, FileKind::container, 0, 1);
  put(*own, FileKind::descriptor, 0, 1);
  EXPECT_EQ(own->slots.used_bytes(), disk.used_bytes("/store"));
  options.quota_bytes = own->slots.used_bytes() + format::kSuperblockBytes + kParityBytes - 1;
  const auto limited = open_store(0);
  EXPECT_EQ(limited->slots.used_bytes(), own->slots.used_bytes());
  try {
    put(*limited, FileKind::parity, 0, 1);
    ADD_FAILURE() << "the parity fits by itself, but not beside the others";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::no_space);
    EXPECT_THAT(error.what(), HasSubstr("store.quota_bytes"));
  }
  EXPECT_NO_THROW(put(*limited, FileKind::descriptor, 0, 2));
}

std::vector<std::byte> noise(std::size_t size_bytes) {
  std::vector<std::byte> bytes(size_bytes);
  for (std::size_t i = 0; i < size_bytes; ++i) bytes[i] = static_cast<std::byte>(i * 7 + i / 251);
  return bytes;
}

/// The systems of ranks with an odd number have huge pages, which are taken before.
void grow_out_of_order(store::NodeStore& own, FaultyDisk& disk, bool memory, bool has_huge_pages) {
  const auto bytes = noise(300'001);
  for (int turn = 0; turn < 2; ++turn) {  // a new file, and one that is written again
    store::StoreFile& file = own.new_files.begin_file({FileKind::parity, 0});
    file.grow_as_written(bytes.size());
    EXPECT_EQ(file.mapped().empty(), !memory || !has_huge_pages);
    EXPECT_EQ(file.size_bytes(), bytes.size());
    // Out of order, in pieces of any size, read back before and after; a part in the middle is never written.
    for (const std::size_t begin : {200'000U, 4096U, 100'001U}) {
      const std::size_t end = begin == 4096 ? 100'001 : begin == 100'001 ? 150'000 : bytes.size();
      file.bytes().write_with_crc(begin, std::span(bytes).subspan(begin, end - begin), 0);
    }
    std::vector<std::byte> back(100);
    EXPECT_EQ(file.bytes().read_with_crc(99'950, back, 0), crc32c(std::span(bytes).subspan(99'950, 100)));
    std::ranges::fill(back, std::byte{0});
    file.bytes().read(99'950, back);
    EXPECT_TRUE(std::ranges::equal(back, std::span(bytes).subspan(99'950, 100)));
    EXPECT_EQ(file.bytes().checksum(200'000, 100'001, 0), crc32c(std::span(bytes).subspan(200'000)));
    file.flush(false);
    EXPECT_EQ(file.mapped().empty(), !memory);
    const auto all = disk.read_all(file.path());
    ASSERT_EQ(all.size(), bytes.size());
    file.bytes().read(99'950, back);
    EXPECT_TRUE(std::ranges::equal(back, std::span(bytes).subspan(99'950, 100)));
    EXPECT_TRUE(std::equal(all.begin() + 4096, all.begin() + 150'000, bytes.begin() + 4096));
    EXPECT_TRUE(std::equal(all.begin() + 200'000, all.end(), bytes.begin() + 200'000));
    file.bytes().write_with_crc(0, std::span(bytes).first(4096), 0);
    file.flush(false);
    EXPECT_EQ(file.bytes().checksum(0, 4096, 0), crc32c(std::span(bytes).first(4096)));
    file.unseal();
    own.new_files.discard_file(file);
  }
}

TEST_P(StoreFiles, WhatGrowsAsItIsWrittenIsTheSameFile) {
  for (const int rank : {0, 1}) grow_out_of_order(*open_store(rank), disk, GetParam(), rank == 1);
}

TEST_P(StoreFiles, AStoreThatFillsWhileAFileGrowsSaysWhatIsNeededAndWhatIsFree) {
  const auto bytes = noise(300'000);
  struct Case {
    int rank;
    std::uint64_t nth;
  };
  for (const auto& [rank, nth] : {Case{0, 1}, {0, 2}, {0, 3}, {1, 1}, {1, 3}}) {  // {1, 2} are the huge pages
    const auto own = open_store(rank);
    store::StoreFile& file = own->new_files.begin_file({FileKind::parity, 0});
    disk.fail(rank, disk.operations(rank) + 2 + nth, ENOSPC);
    try {
      file.grow_as_written(bytes.size());
      for (std::size_t begin = 4096; begin < bytes.size(); begin += 50'000) {
        file.bytes().write_with_crc(
            begin, std::span(bytes).subspan(begin, std::min<std::size_t>(50'000, bytes.size() - begin)), 0);
      }
      file.flush(false);
      ADD_FAILURE() << "nothing was refused";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::no_space);
      EXPECT_THAT(error.what(), HasSubstr(GetParam() ? " inodes are free (filesystem)" : ""));
    }
    disk.heal(rank);
    own->new_files.discard_file(file);
    EXPECT_NO_THROW(put(*own, FileKind::parity, rank, 1));
    own->remove_all_files();
  }
}

/// A start that died while it made a file may leave one with a size and no storage, which opening it has to take.
TEST_P(StoreFiles, AnIdleFileThatCannotBeOpenedForWantOfRoomGivesWayToANewOne) {
  begin(*open_store(0), FileKind::parity, 0, 1).unseal();  // never sealed
  const auto own = open_store(0);
  static_cast<void>(own->files.scan(run_id, Verify::headers));
  disk.fail(0, disk.operations(0) + 1, ENOSPC);  // on memory, what opening takes; else what is written first
  const auto failure = attempt([&] { put(*own, FileKind::parity, 0, 2); });
  EXPECT_EQ(failure.has_value(), !GetParam());
  if (failure) put(*own, FileKind::parity, 0, 2);
  const auto found = open_store(0)->files.scan(run_id, Verify::all);
  ASSERT_EQ(found.size(), 1U) << "the name is used again";
  EXPECT_TRUE(found.front().intact);
  EXPECT_EQ(found.front().key(), key_of(FileKind::parity, 2));
}

TEST_P(StoreFiles, RemoveAllTakesEveryKindAndLeavesOtherRanks) {
  for (const FileKind kind : kAllKinds) {
    put(*open_store(0), kind, 0, 1);
    put(*open_store(1), kind, 1, 1);
  }
  open_store(0)->remove_all_files();
  EXPECT_THAT(scanned(*open_store(0)), IsEmpty());
  EXPECT_EQ(scanned(*open_store(1)).size(), 3U);
}

TEST_P(StoreFiles, AParityNameTakenByADirectoryIsSkipped) {
  fs::FileStatus directory;
  directory.kind = fs::FileStatus::Kind::directory;
  directory.owner = 1000;
  disk.plant("/store/parity-0.0.kedge", directory);
  const auto own = open_store(0);
  EXPECT_THAT(own->files.scan(run_id, Verify::all).front().damage, HasSubstr("not a regular file of this user"));
  EXPECT_EQ(put(*own, FileKind::parity, 0, 1).path(), "/store/parity-0.1.kedge");
  own->retirement.retire_all_but(only({}));
  own->remove_all_files();
  EXPECT_TRUE(exists("parity-0.0.kedge"));
  EXPECT_FALSE(exists("parity-0.1.kedge"));
}

TEST_P(StoreFiles, ParityLostBehindOurBackIsReplaced) {
  const auto own = open_store(0);
  const std::string path = put(*own, FileKind::parity, 0, 1).path();
  own->retirement.retire_all_but(only({}));
  disk.remove_all(path);
  EXPECT_EQ(put(*own, FileKind::parity, 0, 2).path(), path);
  EXPECT_TRUE(open_store(0)->files.scan(run_id, Verify::all).front().intact);
}

TEST_P(StoreFiles, AfterAPowerLossNoOldHeaderStandsBeforeNewParity) {
  if (GetParam()) GTEST_SKIP() << "memory is empty after a power loss";
  options.durable = true;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const auto own = open_store(0);
    put(*own, FileKind::parity, 0, 1).flush(true);
    own->retirement.retire_all_but(only({}));
    begin(*own, FileKind::parity, 0, 2);  // into the same file; not synced
    disk.restart(Crash::power, seed);
    const auto found = open_store(0)->files.scan(run_id, Verify::headers);
    ASSERT_EQ(found.size(), 1U);
    EXPECT_NE(found.front().key(), key_of(FileKind::parity, 1)) << "seed " << seed;
    disk.remove_all(found.front().path);
  }
}

}  // namespace
}  // namespace kedge::faults::files_test
