// kedge show on a node's store, in which jobs of several numbers of ranks left checkpoints.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "command/kedge_program.hpp"
#include "harness/sample_prefix.hpp"
#include "harness/sample_store.hpp"

namespace kedge::testing::kedge_show_store_test {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

class ShowStore : public ::testing::Test {
 protected:
  void add(std::uint32_t rank, std::uint32_t ranks, std::uint64_t generation) const {
    format::Superblock identity = sample_identity();
    identity.commit = sample_entry(generation, ranks).commit;
    identity.logical_rank = LogicalRank{rank};
    (void)store_.add("rank-" + std::to_string(rank) + "." + std::to_string(generation) + ".h5",
                     sample_rank_regions(rank, ranks), identity);
  }
  [[nodiscard]] Result show(const std::string& words = "") const { return kedge("show " + store_.directory() + words); }
  const SampleStore store_;
};

TEST_F(ShowStore, TheNewestOfAnyNumberOfRanks) {
  for (const std::uint32_t rank : {0U, 1U, 2U, 3U}) add(rank, 4, 2);
  add(0, 3, 5);
  add(1, 3, 5);
  const Result shown = show();
  EXPECT_EQ(shown.status, 0) << shown.text;
  EXPECT_THAT(shown.text,
              AllOf(ContainsRegex("tag +step-000500\n"), ContainsRegex("ranks +3\n"),
                    ContainsRegex("here +2 of 3 containers: of ranks 0, 1\n"),
                    ContainsRegex("temperature +float64 +120 x 64 +2 .* 2 blocks of 40 rows, from "
                                  "\\(0, 0\\) to \\(79, 63\\)\n"),
                    ContainsRegex("step +int64 +scalar +2 "), HasSubstr("older ones are here too: kedge ls ")));
  EXPECT_THAT(shown.text, Not(HasSubstr("HOLE"))) << "other nodes have the rest";
  EXPECT_THAT(show(" --blocks").text, ContainsRegex("temperature +1 +\\(40, 0\\) +40 x 64\n"));
  EXPECT_THAT(show(" --rank 1").text, ContainsRegex("logical rank +1 of 3\n"));
  EXPECT_THAT(show(" --rank 2").text, HasSubstr("of the newest checkpoint, this store has ranks 0, 1"));
  EXPECT_EQ(show(" --rank 2").status, 2);
  const Json json = kedge_json("show --blocks " + store_.directory(), 0);
  EXPECT_EQ(json["kind"], "store");
  EXPECT_EQ(json["world_size"], 3);
  EXPECT_EQ(json["ranks"], (Json{0, 1}));
  EXPECT_EQ(json["arrays"][1]["block_list"].size(), 2U);
}

TEST_F(ShowStore, OneThatIsCompleteHere) {
  for (const std::uint32_t rank : {0U, 2U, 3U}) add(rank, 4, 2);
  EXPECT_THAT(show().text, ContainsRegex("here +3 of 4 containers: of ranks 0, 2, 3\n"));
  add(1, 4, 2);
  EXPECT_THAT(show().text, AllOf(ContainsRegex(" 4 blocks of 40 rows\n"), Not(HasSubstr("older ones"))));
}

TEST_F(ShowStore, WhatTwoRanksSaved) {
  for (const std::uint32_t rank : {0U, 1U}) {
    format::Superblock identity = sample_identity();
    identity.commit = sample_entry(2, 2).commit;
    identity.logical_rank = LogicalRank{rank};
    (void)store_.add("rank-" + std::to_string(rank) + ".0.h5",
                     {{"field", DataType::float64, Shape{5, 4}, Shard{{10, 4}, {std::uint64_t{4} * rank, 0}}, false}},
                     identity);
  }
  EXPECT_THAT(show().text, HasSubstr("; OVERLAP: ranks 0 and 1 both saved (4, 0); HOLE: no block has (9, 0)\n"));
  const Json json = kedge_json("show " + store_.directory(), 0)["arrays"][0];
  EXPECT_EQ(json["overlap"], (Json{0, 1}));
  EXPECT_EQ(json["hole"], (Json{9, 0}));
}

TEST_F(ShowStore, WithoutASealedContainer) {
  (void)store_.add_file("rank-0.1.h5", 8192, 0);
  EXPECT_EQ(show().status, 2);
  EXPECT_THAT(show().text, HasSubstr("no container is sealed in this store yet"));
  add(0, 1, 3);
  truncate(store_.path("rank-0.3.h5"), 6000);
  EXPECT_EQ(show().status, 1) << show().text;
}

}  // namespace
}  // namespace kedge::testing::kedge_show_store_test
