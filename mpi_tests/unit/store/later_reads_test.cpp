// Files that are read after the others of their commit, while the store is in use: which there are, and what becomes of
// those that are damaged.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <vector>

#include "unit/store/store_fixture.hpp"

namespace kedge::faults::later_reads_test {
namespace {

using store::PinnableFile;
using store::SkippedFiles;
using testing::ElementsAre;
using testing::IsEmpty;

class LaterReads : public StoreFiles {};
INSTANTIATE_TEST_SUITE_P(Kinds, LaterReads, testing::Bool(),
                         [](const auto& kind) { return kind.param ? "memory" : "block"; });

PinnableFile offered(FileKind kind, int rank, std::uint8_t commit, std::uint8_t protection = 1) {
  return {kind, rank_of(rank), key_of(kind, commit, protection)};
}

TEST_P(LaterReads, WhatIsOfferedOfACommitIsOwnAndAdopted) {
  for (const FileKind kind : kAllKinds) put(*open_store(5), kind, 5, 1);
  const auto own = open_store(0, {0});
  for (std::uint8_t commit = 1; commit <= 2; ++commit) {
    for (const FileKind kind : kAllKinds) put(*own, kind, 0, commit);
  }
  (void)own->files.scan(run_id, Verify::headers);
  EXPECT_THAT(own->files.list_pinnable(id_of(1)),
              ElementsAre(offered(FileKind::container, 0, 1), offered(FileKind::container, 5, 1),
                          offered(FileKind::parity, 0, 1), offered(FileKind::parity, 5, 1),
                          offered(FileKind::descriptor, 0, 1), offered(FileKind::descriptor, 5, 1)));
  EXPECT_THAT(own->files.list_pinnable(id_of(3)), IsEmpty());
}

TEST_P(LaterReads, WhatIsLeftOutIsNotRead) {
  for (const int rank : {0, 5}) {
    for (const FileKind kind : kAllKinds) put(*open_store(rank), kind, rank, 1);
  }
  for (const int rank : {0, 5}) disk.flip_bit("/store/parity-" + std::to_string(rank) + ".0.kedge", 9000);
  const auto own = open_store(0, {0});
  const std::array protection{key_of(FileKind::parity, 1)};
  const auto damaged = [&](const SkippedFiles& left_out) {
    (void)own->files.scan(run_id, Verify::headers);
    int count = 0;
    for (const store::ScannedFile& held : own->files.verify(run_id, id_of(1), left_out)) count += held.intact ? 0 : 1;
    return count;
  };
  EXPECT_EQ(damaged({}), 2);
  EXPECT_EQ(damaged({protection, {}}), 1) << "of this rank alone";
  EXPECT_EQ(damaged({{}, protection}), 0);
  EXPECT_TRUE(own->files.has_file(FileKind::parity, rank_of(0), key_of(FileKind::parity, 1)));
}

TEST_P(LaterReads, RejectedParityIsRemovedAndOtherFilesAreOfferedNoMore) {
  for (const int rank : {0, 5}) {
    for (const FileKind kind : kAllKinds) put(*open_store(rank), kind, rank, 1);
  }
  const auto own = open_store(0, {0});
  (void)own->files.scan(run_id, Verify::headers);
  for (const int rank : {0, 5}) {
    for (const FileKind kind : kAllKinds) {
      own->files.reject_file(offered(kind, rank, 1));
      EXPECT_FALSE(own->files.has_file(kind, rank_of(rank), key_of(kind, 1)));
      own->files.reject_file(offered(kind, rank, 1));  // is no error
    }
  }
  EXPECT_THAT(own->files.list_pinnable(id_of(1)), IsEmpty());
  EXPECT_FALSE(exists("parity-0.0.kedge"));
  for (const char* other : {"rank-0.0.h5", "set-0.0.kedge", "rank-5.0.h5", "parity-5.0.kedge", "set-5.0.kedge"}) {
    EXPECT_TRUE(exists(other)) << other;
  }
}

TEST_P(LaterReads, ARejectedFileThatIsPinnedStaysUntilItIsNot) {
  const auto own = open_store(0, {0});
  put(*own, FileKind::parity, 0, 1);
  (void)own->files.scan(run_id, Verify::headers);
  store::StoreFile& pinned = own->files.pin(FileKind::parity, rank_of(0), key_of(FileKind::parity, 1));
  own->files.reject_file(offered(FileKind::parity, 0, 1));
  EXPECT_FALSE(own->files.has_file(FileKind::parity, rank_of(0), key_of(FileKind::parity, 1)));
  EXPECT_TRUE(exists("parity-0.0.kedge"));
  own->files.unpin(pinned);
}

}  // namespace
}  // namespace kedge::faults::later_reads_test
