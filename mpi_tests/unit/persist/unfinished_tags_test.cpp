// Tag directories that a start left unfinished are known to it and to later starts.
#include "persist/unfinished_tags.hpp"

#include <gmock/gmock.h>

#include "unit/persist/records_fixture.hpp"

namespace kedge::faults::unfinished_tags_test {
namespace {

using persist::RunStart;
using persist::UnfinishedTags;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

using UnfinishedTagsTest = persist::testing::RecordsTest;

TEST_F(UnfinishedTagsTest, UnfinishedWorkIsThatOfThisStartAndThoseBefore) {
  RunStart older = begun();
  UnfinishedTags(older).mark("a.1-00000000");
  UnfinishedTags(older).mark("b.2-00000000");
  RunStart newer = start();
  UnfinishedTags(newer).mark("a.1-00000000");
  UnfinishedTags(newer).mark("c.3-00000000");
  EXPECT_THAT(UnfinishedTags(older).list(), ElementsAre("a.1-00000000", "b.2-00000000"));
  UnfinishedTags(older).unmark("a.1-00000000");
  EXPECT_THAT(UnfinishedTags(older).list(), ElementsAre("b.2-00000000"));
  EXPECT_THAT(UnfinishedTags(newer).list(), ElementsAre("b.2-00000000", "a.1-00000000", "c.3-00000000"));
  UnfinishedTags(newer).unmark("b.2-00000000");
  EXPECT_THAT(UnfinishedTags(newer).list(), ElementsAre("a.1-00000000", "c.3-00000000"));
}

TEST_F(UnfinishedTagsTest, NamesThatNoStartWritesAreNoUnfinishedWork) {
  RunStart mine = begun();
  for (const char* name : {"unfinished-99999999999999999999-a.1-00000000", "unfinished-1.a.1-00000000", "unfinished-1",
                           "unfinished-", "remembered-1-a.1-00000000"}) {
    plant(name);
  }
  EXPECT_THAT(UnfinishedTags(mine).list(), IsEmpty());
}

}  // namespace
}  // namespace kedge::faults::unfinished_tags_test
