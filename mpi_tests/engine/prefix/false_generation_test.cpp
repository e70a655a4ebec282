// A generation that no engine could have taken, in files of the prefix whose checksums fit: it is refused, and what is
// committed afterwards is not hidden by it.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>

#include "base/text.hpp"
#include "commits/head_check.hpp"
#include "format/manifest_rows.hpp"
#include "harness/flush_fixture.hpp"
#include "harness/several_starts.hpp"
#include "persist/tag_catalog.hpp"

namespace kedge::faults::false_generation_test {
namespace {

const std::string kRecords = "/prefix/.kedge/test";

/// What says the false generation of "b".
struct Told {
  std::string name;
  bool manifest = false;
  bool directory = false;
  bool containers = false;
  bool catalog = false;
};

class GreatestGeneration : public FlushFixture {
 protected:
  static constexpr std::uint32_t kRanks = 2;
  GreatestGeneration() : job(kRanks) { commit_steps(job, {{"a", 1}, {"b", 2}}); }

  void write_head(const std::string& path, const format::SuperblockBytes& head) {
    auto bytes = job.disk.read_all(path);
    std::ranges::copy(head, bytes.begin());
    job.disk.write_all(path, bytes);
  }
  void tell(const Told& told, std::uint64_t generation) {
    const persist::TagEntry truth = list(job).entries.front();
    ASSERT_EQ(truth.commit.tag, "b");
    persist::TagEntry lie = truth;
    lie.commit.generation = generation;
    if (told.manifest) {
      const std::string path = manifest_of(job, "b");
      format::ManifestHead head = format::decode_manifest_head(job.disk.read_all(path), path);
      head.commit = lie.commit;
      write_head(path, format::encode_manifest_head(head));
    }
    for (std::uint32_t rank = 0; told.containers && rank < kRanks; ++rank) {
      const std::string path = container_of(job, "b", rank);
      format::Superblock superblock = format::decode_superblock(job.disk.read_all(path), path);
      superblock.commit = lie.commit;
      write_head(path, format::encode_superblock(superblock));
    }
    if (told.directory) {
      lie.directory = persist::tag_directory_name(lie.commit);
      job.disk.view(0)->rename("/prefix/" + truth.directory, "/prefix/" + lie.directory);
    }
    job.disk.remove_all(kRecords + "/" + std::string(persist::kTagCatalogFile));
    if (told.catalog) persist::TagCatalog(*job.disk.view(0), kRecords).add(lie);
  }
  PersistentJob job;
};

class FalseGeneration : public GreatestGeneration, public ::testing::WithParamInterface<Told> {};

TEST_P(FalseGeneration, HidesNoCommitThatComesAfterIt) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  const auto before = job.disk.snapshot();
  for (const std::uint64_t generation : {kMost, kMost - 1, kMost / 2 + 1, commits::kGenerationMax + 1}) {
    for (const bool stores_lost : {false, true}) {
      SCOPED_TRACE(compose("{}{}", generation, stores_lost ? ", stores lost" : ""));
      job.disk.restore(before);
      tell(GetParam(), generation);
      if (stores_lost) lose_stores(job, {0, 1});
      const Opened opened = reopen(job, latest, Newer::keep, {{"c", 3}});
      EXPECT_EQ(opened.step, stores_lost ? 1 : 2) << to_string(opened.failure.value_or(Failure{}));
      lose_stores(job, {0, 1});
      const Opened again = reopen(job);
      EXPECT_EQ(again.tag, "c");
      EXPECT_EQ(again.step, 3) << to_string(again.failure.value_or(Failure{}));
      EXPECT_EQ(again.info.source, RecoverySource::fetched);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(ToldBy, FalseGeneration,
                         ::testing::Values(Told{"manifest", true}, Told{"manifest_and_directory", true, true},
                                           Told{"manifest_directory_and_containers", true, true, true},
                                           Told{"directory_and_catalog", false, true, false, true},
                                           Told{"all", true, true, true, true}),
                         [](const auto& each) { return each.param.name; });

/// One that an engine could have taken, and that leaves none for the next commit.
TEST_F(GreatestGeneration, IsToldInWordsAndTheRunGoesOnWithoutIt) {
  tell({"all", true, true, true, true}, commits::kGenerationMax);
  lose_stores(job, {0, 1});
  const Opened opened = reopen(job, latest, Newer::keep, {{"c", 3}});
  EXPECT_EQ(opened.step, 2);
  ASSERT_TRUE(opened.failure);
  EXPECT_EQ(opened.failure->code, ErrorCode::corrupt);
  EXPECT_TRUE(says(opened.failure->message, {compose("the generation {}", commits::kGenerationMax), "kedge ls"}))
      << opened.failure->message;
  job.disk.remove_all(directory_of(job, "b"));
  lose_stores(job, {0, 1});
  EXPECT_EQ(reopen(job, latest, Newer::keep, {{"c", 3}}).step, 1);
  lose_stores(job, {0, 1});
  EXPECT_EQ(reopen(job).step, 3);
}

}  // namespace
}  // namespace kedge::faults::false_generation_test
