// Tags that rank 0 found, on their way to the other ranks.
#include "recovery/found_tag.hpp"

#include <gtest/gtest.h>

namespace kedge::recovery {
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

TEST(FoundTag, ATagThatIsTooLongIsAFailureBeforeAnythingIsSent) {
  FoundTag tag;
  tag.commit.tag = std::string(129, 't');
  EXPECT_THROW((void)pack(std::vector{tag}), Error);
}

}  // namespace
}  // namespace kedge::recovery
