// Files of one rank that another thread seals, retires or makes ready meanwhile are kept, retired and made ready as
// many as are asked for.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <string>

#include "kedge/error.hpp"
#include "unit/store/store_fixture.hpp"

namespace kedge::faults::files_in_turn_test {
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
  own->retirement.retire_all_but(only({key_of(FileKind::container, 2)}), 2);
  EXPECT_NE(put(*own, FileKind::container, 3, 10).path(), newest) << "the file of commit 1 is the one to reuse";
  EXPECT_NO_THROW(
      own->files.unpin(own->files.pin(FileKind::container, LogicalRank{3}, key_of(FileKind::container, 9))));
  EXPECT_NO_THROW(
      own->files.unpin(own->files.pin(FileKind::container, LogicalRank{3}, key_of(FileKind::container, 2))));
}

TEST_P(StoreFilesInTurn, AsManyIdleFilesStayAsAreToBeSpared) {
  for (const std::size_t spared : {std::size_t{1}, std::size_t{2}}) {
    const auto own = open_store(3);
    own->retirement.set_idle_file_count(FileKind::container, spared);
    for (std::uint8_t commit = 1; commit <= 4; ++commit) put(*own, FileKind::container, 3, commit);
    own->retirement.retire_all_but(only({key_of(FileKind::container, 4)}));
    EXPECT_EQ(own->slots.own_slots(FileKind::container).size(), 1 + spared);
    own->remove_all_files();
  }
}

TEST_P(StoreFilesInTurn, FilesAreMadeReadyUntilSoManyAreIdle) {
  const auto own = open_store(3);
  put(*own, FileKind::container, 3, 1);
  own->new_files.preallocate(FileKind::container, 8192, {1, 3});
  own->new_files.preallocate(FileKind::container, 8192, {1, 3});
  EXPECT_EQ(own->slots.own_slots(FileKind::container).size(), 2U);
  own->new_files.preallocate(FileKind::container, 8192, {2, 3});
  own->new_files.preallocate(FileKind::container, 8192, {2, 3});
  EXPECT_EQ(own->slots.own_slots(FileKind::container).size(), 3U);
  own->new_files.preallocate(FileKind::container, 8192, {3, 3});
  EXPECT_EQ(own->slots.own_slots(FileKind::container).size(), 3U) << "no more than that in all";
}

// As after a start: what the last one has given back is filled, and is not begun before what is ready.
TEST_P(StoreFilesInTurn, AnEmptyFileIsMadeReadyAndNotBegunBeforeOneThatIs) {
  constexpr std::uint64_t kBytes = 8192;
  const std::array planned{store::PlannedFile{FileKind::container, kBytes}};
  const auto own = open_store(3);
  put(*own, FileKind::container, 3, 1);
  const std::uint64_t kept_bytes = own->slots.used_bytes();
  const auto give_back = [&] { own->retirement.free_unused_storage(); };
  own->new_files.discard_file(own->new_files.begin_file({FileKind::container, 0}));
  give_back();
  ASSERT_EQ(own->slots.own_slots(FileKind::container).size(), 2U);
  ASSERT_EQ(own->slots.used_bytes(), kept_bytes);
  own->new_files.preallocate(FileKind::container, kBytes, {1, 3});
  EXPECT_EQ(own->slots.own_slots(FileKind::container).size(), 2U);
  EXPECT_EQ(own->slots.used_bytes(), kept_bytes + kBytes);
  EXPECT_EQ(own->new_files.additional_bytes(planned), 0U);

  // Two that are ready, of which the first, and then the second, is emptied.
  own->new_files.preallocate(FileKind::container, kBytes, {2, 3});
  for (int emptied = 0; emptied < 2; ++emptied) {
    ASSERT_EQ(own->slots.used_bytes(), kept_bytes + 2 * kBytes);
    store::StoreFile& first = own->new_files.begin_file({FileKind::container, kBytes});
    store::StoreFile& second = own->new_files.begin_file({FileKind::container, kBytes});
    own->new_files.discard_file(emptied == 0 ? first : second);
    give_back();
    own->new_files.discard_file(emptied == 0 ? second : first);
    own->new_files.preallocate(FileKind::container, kBytes, {1, 3});
    EXPECT_EQ(own->new_files.additional_bytes(planned), 0U) << emptied;
    own->new_files.preallocate(FileKind::container, kBytes, {2, 3});
  }
}

}  // namespace
}  // namespace kedge::faults::files_in_turn_test
