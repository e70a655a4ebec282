// Names of tag directories and of what lies in them.
#include <gtest/gtest.h>

#include <vector>

#include "persist/tag_directory.hpp"

namespace kedge::persist::tag_directory_test {
namespace {

Id128 id(std::uint8_t fill) {
  Id128 id;
  id.bytes.fill(fill);
  return id;
}

CommitHead commit_of(const Tag& tag, std::uint64_t generation, const Id128& commit_id) {
  CommitHead commit;
  commit.tag = tag;
  commit.generation = generation;
  commit.id = commit_id;
  return commit;
}

TEST(TagDirectory, NameSaysTagGenerationAndBeginningOfTheId) {
  EXPECT_EQ(tag_directory_name(commit_of("step-000100", 7, id(0xab))), "step-000100.7-abababab");
}

TEST(TagDirectory, ParsesWhatItWrites) {
  const std::vector<std::string> tags = {"a", "0",  "step-000100", "v1.2", "x.5-01234567",       "-",
                                         "_", "a.", "a-",          "7",    std::string(128, 'z')};
  for (const std::string& tag : tags) {
    for (const std::uint64_t generation : {std::uint64_t{0}, std::uint64_t{10}, ~std::uint64_t{0}}) {
      const std::string name = tag_directory_name(commit_of(tag, generation, id(0x0f)));
      const auto parsed = parse_tag_directory_name(name);
      ASSERT_TRUE(parsed) << name;
      EXPECT_EQ(*parsed, (TagDirectory{tag, generation, "0f0f0f0f"})) << name;
    }
  }
}

TEST(TagDirectory, RefusesWhatItWouldNotWrite) {
  const std::vector<std::string> names = {"",
                                          "latest",
                                          ".kedge",
                                          "step",
                                          "step.7",
                                          "step-abababab",
                                          ".7-abababab",
                                          "step.-abababab",
                                          "step.7-ababab",
                                          "step.7-ababababa",
                                          "step.7-ABABABAB",
                                          "step.7-abababag",
                                          "step.07-abababab",
                                          "step.+7-abababab",
                                          "step.-7-abababab",
                                          "step.7 -abababab",
                                          "step.18446744073709551616-abababab",
                                          ".step.7-abababab",
                                          "latest.7-abababab",
                                          "st/ep.7-abababab",
                                          "st ep.7-abababab",
                                          "step.7-abababab/",
                                          "step.7-abababab.tmp",
                                          "st\xc3\xa9p.7-abababab",
                                          std::string(129, 'z') + ".7-abababab",
                                          std::string("st\0p.7-abababab", 15)};
  for (const std::string& name : names) EXPECT_FALSE(parse_tag_directory_name(name)) << name;
}

TEST(TagDirectory, ContainersAreSpreadOverDirectoriesAndFitTheShardTable) {
  EXPECT_EQ(container_file(LogicalRank{0}), "data/0/rank-0.h5");
  EXPECT_EQ(container_file(LogicalRank{999}), "data/0/rank-999.h5");
  EXPECT_EQ(container_file(LogicalRank{1000}), "data/1/rank-1000.h5");
  EXPECT_EQ(container_directory(LogicalRank{54321}), "data/54");
  EXPECT_LE(container_file(LogicalRank{~0U}).size(), 32U);
}

}  // namespace
}  // namespace kedge::persist::tag_directory_test
