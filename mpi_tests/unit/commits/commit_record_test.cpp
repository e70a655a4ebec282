// Who a commit is: its order, and that nothing of it is lost between processes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "commits/commit_record.hpp"

namespace kedge::commits::commit_record_test {
namespace {

Id128 id_of(std::uint8_t first) {
  Id128 id;
  id.bytes.fill(static_cast<std::uint8_t>(first + 1));
  id.bytes[0] = first;
  return id;
}

CommitHead head_of(std::uint64_t generation, std::uint8_t id) {
  return {id_of(90), id_of(id), id_of(91), generation, 3, 17, 1'234'567'890'123, "step-40"};
}

TEST(CommitRecord, GivesBackEveryField) {
  const CommitHead head = head_of(40, 7);
  EXPECT_EQ(to_head(to_record(head)), head);
  EXPECT_EQ(to_head(to_record(CommitHead{})), CommitHead{});
}

TEST(CommitRecord, TakesTheLongestTagAndRefusesLonger) {
  CommitHead head = head_of(40, 7);
  head.tag = std::string(kTagBytesMax, 'x');
  EXPECT_EQ(to_head(to_record(head)), head);
  head.tag += 'y';
  EXPECT_THROW(static_cast<void>(to_record(head)), Error);
}

TEST(CommitRecord, ReadsNoFurtherThanItsTag) {
  CommitRecord record = to_record(head_of(40, 7));
  record.tag.fill('x');
  EXPECT_EQ(to_head(record).tag, std::string(sizeof record.tag, 'x'));
}

TEST(CommitHead, IsNewerByGenerationThenById) {
  EXPECT_TRUE(is_newer(head_of(2, 0), head_of(1, 9)));
  EXPECT_FALSE(is_newer(head_of(1, 9), head_of(2, 0)));
  EXPECT_TRUE(is_newer(head_of(2, 5), head_of(2, 4)));
  EXPECT_FALSE(is_newer(head_of(2, 4), head_of(2, 4)));

  CommitHead later = head_of(2, 4);  // clocks and starts have no say
  later.time_ns += 1;
  later.incarnation += 1;
  EXPECT_FALSE(is_newer(later, head_of(2, 4)));

  std::vector<CommitHead> heads = {head_of(1, 2), head_of(3, 1), head_of(2, 1), head_of(3, 2)};
  std::ranges::sort(heads, is_newer);
  EXPECT_THAT(heads, testing::ElementsAre(head_of(3, 2), head_of(3, 1), head_of(2, 1), head_of(1, 2)));
}

}  // namespace
}  // namespace kedge::commits::commit_record_test
