// Tags that rank 0 found, on their way to the other ranks.
#include "recovery/found_tag.hpp"

#include <gtest/gtest.h>

#include "base/invariant.hpp"

namespace kedge::recovery::found_tag_test {
namespace {

TEST(FoundTag, WhatIsPackedIsUnpackedWithTextsOfEveryLength) {
  std::vector<FoundTag> tags;
  for (const std::size_t length : {0U, 1U, 255U, 5000U}) {
    FoundTag tag;
    tag.commit.generation = length + 1;
    tag.commit.id.bytes[3] = 7;
    tag.commit.tag = "step";
    tag.total_bytes = 3 * length;
    tag.directory = std::string(length, 'd');
    tag.problem = std::string(5000 - length, 'p');
    tags.push_back(tag);
  }
  const std::vector<FoundTag> unpacked = unpack(pack(tags));
  ASSERT_EQ(unpacked.size(), tags.size());
  for (std::size_t i = 0; i < tags.size(); ++i) {
    EXPECT_EQ(unpacked[i].commit, tags[i].commit);
    EXPECT_EQ(unpacked[i].total_bytes, tags[i].total_bytes);
    EXPECT_EQ(unpacked[i].directory, tags[i].directory);
    EXPECT_EQ(unpacked[i].problem, tags[i].problem);
    EXPECT_EQ(unpacked[i].is_usable(), tags[i].problem.empty());
  }
  EXPECT_TRUE(unpack(pack({})).empty());
}

TEST(FoundTag, WhatIsCutShortIsNotTakenForTags) {
  FoundTag tag;
  tag.commit.tag = "step";
  tag.directory = "step.1-00000000";
  tag.problem = "it is torn";
  const std::vector<std::byte> packed = pack(std::vector{tag});
  for (std::size_t length = 1; length < packed.size(); ++length) {
    // A copy of its own: a memory checker sees what is read behind its end.
    const std::vector<std::byte> shorter(packed.begin(), packed.begin() + static_cast<std::ptrdiff_t>(length));
    EXPECT_THROW((void)unpack(shorter), BrokenInvariant) << length;
  }
}

TEST(FoundTag, ATagThatIsTooLongIsAFailureBeforeAnythingIsSent) {
  FoundTag tag;
  tag.commit.tag = std::string(129, 't');
  EXPECT_THROW((void)pack(std::vector{tag}), Error);
}

}  // namespace
}  // namespace kedge::recovery::found_tag_test
