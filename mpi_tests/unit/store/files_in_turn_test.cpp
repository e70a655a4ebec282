// Files of one rank that another thread seals, retires or makes ready meanwhile.
#include <gtest/gtest.h>

#include <array>
#include <string>

#include "kedge/error.hpp"
#include "unit/store/store_fixture.hpp"

namespace kedge::faults {
namespace {

class StoreFilesInTurn : public StoreFiles {};

INSTANTIATE_TEST_SUITE_P(Kinds, StoreFilesInTurn, testing::Bool(),
                         [](const auto& kind) { return kind.param ? "memory" : "block"; });

/// Another thread may be sealing a commit that whoever retires does not know yet.
TEST_P(StoreFilesInTurn, WhatIsNewerThanTheNewestKnownIsNotRetired) {
  const auto own = open_store(3);
  put(*own, FileKind::container, 3, 1);
  put(*own, FileKind::container, 3, 2);
  const std::string newest = put(*own, FileKind::container, 3, 9).path();
  own->retire_all_but(only({key_of(FileKind::container, 2)}), 2);
  EXPECT_NE(put(*own, FileKind::container, 3, 10).path(), newest) << "the file of commit 1 is the one to reuse";
  EXPECT_NO_THROW(own->unpin(own->pin(FileKind::container, LogicalRank{3}, key_of(FileKind::container, 9))));
  EXPECT_NO_THROW(own->unpin(own->pin(FileKind::container, LogicalRank{3}, key_of(FileKind::container, 2))));
}

TEST_P(StoreFilesInTurn, AsManyIdleFilesStayAsAreToBeSpared) {
  for (const std::size_t spared : {std::size_t{1}, std::size_t{2}}) {
    const auto own = open_store(3);
    own->spare(FileKind::container, spared);
    for (std::uint8_t commit = 1; commit <= 4; ++commit) put(*own, FileKind::container, 3, commit);
    own->retire_all_but(only({key_of(FileKind::container, 4)}));
    EXPECT_EQ(own->files(FileKind::container), 1 + spared);
    own->remove_all();
  }
}

TEST_P(StoreFilesInTurn, FilesAreMadeReadyUntilSoManyAreIdle) {
  const auto own = open_store(3);
  put(*own, FileKind::container, 3, 1);
  own->make_ready(FileKind::container, 8192, {1, 3});
  own->make_ready(FileKind::container, 8192, {1, 3});
  EXPECT_EQ(own->files(FileKind::container), 2U);
  own->make_ready(FileKind::container, 8192, {2, 3});
  own->make_ready(FileKind::container, 8192, {2, 3});
  EXPECT_EQ(own->files(FileKind::container), 3U);
  own->make_ready(FileKind::container, 8192, {3, 3});
  EXPECT_EQ(own->files(FileKind::container), 3U) << "no more than that in all";
}

// As after a start: what the last one has given back is filled, and is not begun before what is ready.
TEST_P(StoreFilesInTurn, AnEmptyFileIsMadeReadyAndNotBegunBeforeOneThatIs) {
  const auto own = open_store(3);
  put(*own, FileKind::container, 3, 1);
  put(*own, FileKind::container, 3, 2);
  own->retire_all_but(only({key_of(FileKind::container, 2)}));
  own->give_back_unused();
  own->discard(own->begin(FileKind::container, 0));
  own->give_back_unused();
  ASSERT_EQ(own->files(FileKind::container), 2U);
  ASSERT_EQ(own->files_with_storage(FileKind::container), 1U);
  own->make_ready(FileKind::container, 8192, {1, 3});
  EXPECT_EQ(own->files(FileKind::container), 2U);
  EXPECT_EQ(own->files_with_storage(FileKind::container), 2U);
  EXPECT_EQ(own->additional_bytes(std::array{store::PlannedFile{FileKind::container, 8192}}), 0U);

  own->give_back_unused();
  own->make_ready(FileKind::container, 8192, {2, 3});  // fills the empty one
  own->make_ready(FileKind::container, 8192, {2, 3});
  EXPECT_EQ(own->files_with_storage(FileKind::container), 3U);
  (void)own->begin(FileKind::container, 8192);
  EXPECT_EQ(own->additional_bytes(std::array{store::PlannedFile{FileKind::container, 8192}}), 0U);
}

}  // namespace
}  // namespace kedge::faults
