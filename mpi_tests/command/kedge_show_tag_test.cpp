// kedge show on the checkpoints of a prefix, however they are named and whatever is left of them.
#include <filesystem>
#include <fstream>

#include "command/checkpoints_fixture.hpp"
#include "persist/tag_directory.hpp"

namespace kedge::testing::kedge_show_tag_test {
namespace {

using persist::TagEntry;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

TEST_F(KedgeCheckpoints, ShowsHeadAttributesArraysAndRegions) {
  add_three();
  const Result shown = on_prefix("show step-000200");
  EXPECT_EQ(shown.status, 0) << shown.text;
  EXPECT_THAT(shown.text, AllOf(ContainsRegex("tag +step-000200\n"), ContainsRegex("generation +2\n"),
                                ContainsRegex("run +heat \\([0-9a-f]{32}\\)\n"), ContainsRegex("ranks +4\n"),
                                ContainsRegex("written +2026-09-21T14:15:20Z\n"), ContainsRegex("HDF5 view +yes\n"),
                                ContainsRegex("parent +[0-9a-f]{32} \\(step-000100\\)\n")));
  EXPECT_THAT(shown.text, AllOf(ContainsRegex("code +heat2d 1.2\n"), ContainsRegex("grid +\\[1280,2048\\]\n"),
                                ContainsRegex("time +0.25\n")));
  EXPECT_THAT(shown.text, AllOf(ContainsRegex("temperature +float64 +160 x 64 +4 +80.0 KiB +4 blocks of 40 rows\n"),
                                ContainsRegex("fields/mask +bool +160 x 64 +4 ")));
  EXPECT_THAT(shown.text,
              AllOf(ContainsRegex("particles +float32 +differs +4 "), ContainsRegex("step +int64 +scalar +4 +32 B "),
                    ContainsRegex("seed +uint64 +4 +4 +128 B +replicated\n"),
                    ContainsRegex("model.pt +opaque +777 +1 +777 B +routed file\n")));
  EXPECT_THAT(shown.text, Not(HasSubstr("rank-0.h5")));
}

TEST_F(KedgeCheckpoints, ShowFindsACheckpointByTagDirectoryAndManifest) {
  add_three();
  const TagEntry entry = sample_entry(2);
  const std::string tag = on_prefix("show step-000200").text;
  EXPECT_EQ(on_prefix("show " + entry.directory).text, tag);
  EXPECT_EQ(kedge("show " + prefix_.path(entry.directory)).text, tag);
  EXPECT_EQ(kedge("show " + manifest(entry)).text, tag);
  EXPECT_THAT(on_prefix("show latest").text, HasSubstr("step-000300"));
  std::ofstream(prefix_.path("latest")) << entry.directory << "\n";
  EXPECT_EQ(kedge("show " + prefix_.path("latest")).text, tag);
  const Result by_tag =
      kedge_in(prefix_.directory(), "show step-000200", "KEDGE_PERSISTENT_PATH=" + prefix_.directory());
  EXPECT_EQ(by_tag.text, tag);
}

/// Generations of two runs say nothing about which is newer.
TEST_F(KedgeCheckpoints, OfSeveralRunsTheLastToCommitIsMeant) {
  add_three();
  persist::TagEntry other = sample_entry(9);
  other.run = "ice";
  other.commit.run_id.bytes.fill(9);
  other.commit.tag = "step-000300";
  other.commit.time_ns = sample_entry(1).commit.time_ns;
  other.directory = persist::tag_directory_name(other.commit);
  prefix_.add(other);
  for (const char* words : {"show latest", "show step-000300"}) {
    const Result shown = on_prefix(words);
    EXPECT_EQ(shown.status, 0) << shown.text;
    EXPECT_THAT(shown.text, HasSubstr(sample_entry(3).directory)) << words;
    EXPECT_THAT(shown.text, HasSubstr("is of run 'heat', the last of several runs")) << words;
    const Result chosen = on_prefix(std::string(words) + " --run ice");
    EXPECT_EQ(chosen.status, 0) << chosen.text;
    EXPECT_THAT(chosen.text, AllOf(HasSubstr(other.directory), Not(HasSubstr("several runs")))) << words;
  }
  std::ofstream(prefix_.path("latest")) << sample_entry(3).directory << "\n";
  EXPECT_THAT(kedge("show " + prefix_.path("latest")).text, HasSubstr("is of run 'heat'")) << "by its path";
  EXPECT_THAT(kedge("show " + prefix_.path("latest") + " --run ice").text, HasSubstr(other.directory));
  EXPECT_THAT(kedge("show --run ice " + prefix_.path(sample_entry(3).directory)).text,
              HasSubstr("no checkpoint of run 'ice'"));
  EXPECT_THAT(on_prefix("show step-000100 --run ice").text, HasSubstr("did you mean step-000300?"));
  EXPECT_EQ(on_prefix("show latest --run snow").status, 2);
  EXPECT_EQ(on_prefix("show latest --run ''").status, 2);
  truncate(manifest(sample_entry(3)), 100);  // nobody knows whose it is
  EXPECT_EQ(on_prefix("show latest --run ice").status, 0);
  EXPECT_EQ(on_prefix("verify latest --run ice").status, 0);
  EXPECT_THAT(kedge("verify " + prefix_.directory() + " --run heat").text,
              AllOf(Not(HasSubstr(other.directory)), HasSubstr(sample_entry(3).directory), HasSubstr("DAMAGED")));
  EXPECT_THAT(kedge("verify " + prefix_.directory()).text, HasSubstr(other.directory));
  EXPECT_THAT(on_prefix("show " + other.directory).text, HasSubstr(other.directory));
}

TEST_F(KedgeCheckpoints, ATagThatWasSavedTwiceIsTheNewer) {
  prefix_.add(sample_entry(1));
  TagEntry again = sample_entry(5);
  again.commit.tag = sample_entry(1).commit.tag;
  again.directory = persist::tag_directory_name(again.commit);
  prefix_.add(again);
  EXPECT_THAT(on_prefix("show step-000100").text, ContainsRegex("generation +5\n"));
  truncate(manifest(again), 100);  // a damaged newest is what was meant, not silently the older
  EXPECT_EQ(on_prefix("show step-000100").status, 1);
}

TEST_F(KedgeCheckpoints, ShowTellsOneRankOrAllContainers) {
  add_three();
  const Result rank = on_prefix("show step-000200 --rank 3");
  EXPECT_EQ(rank.status, 0) << rank.text;
  EXPECT_THAT(rank.text, AllOf(ContainsRegex("logical rank +3 of 4\n"), HasSubstr("shard of 160 x 64 at (120, 0)"),
                               ContainsRegex("particles +float32 +103 x 3 ")));
  EXPECT_THAT(on_prefix("show step-000200 --rank 4").text, HasSubstr("ranks 0 to 3"));
  EXPECT_EQ(on_prefix("show step-000200 --rank 4").status, 2);
  EXPECT_THAT(on_prefix("show step-000200 --containers").text,
              ContainsRegex("3 +data/0/rank-3.h5 +[0-9]+ +[0-9a-f]{8}"));
  EXPECT_EQ(kedge("show --rank 1 " + prefix_.container(sample_entry(1), 0)).status, 2);
  EXPECT_EQ(kedge("show " + prefix_.container(sample_entry(1), 0)).status, 0);
}

TEST_F(KedgeCheckpoints, ShowListsTheBlocksOfArrays) {
  add_three();
  EXPECT_THAT(
      on_prefix("show step-000200 --blocks").text,
      AllOf(ContainsRegex("temperature +3 +\\(120, 0\\) +40 x 64\n"), ContainsRegex("fields/mask +0 +\\(0, 0\\) ")));
  EXPECT_THAT(on_prefix("show step-000200").text, Not(HasSubstr("block at")));
  const Json shown = kedge_json("show step-000200 --blocks --prefix " + prefix_.directory(), 0)["arrays"][1];
  EXPECT_EQ(shown["division"], "4 blocks of 40 rows");
  EXPECT_EQ(shown["hole"], Json());
  ASSERT_EQ(shown["block_list"].size(), 4U);
  EXPECT_EQ(shown["block_list"][3], (Json{{"rank", 3}, {"offset", {120, 0}}, {"shape", {40, 64}}}));
  std::filesystem::remove(prefix_.container(sample_entry(2), 1));
  EXPECT_EQ(kedge_json("show step-000200 --prefix " + prefix_.directory(), 1)["arrays"][1]["hole"], (Json{40, 0}));
}

TEST_F(KedgeCheckpoints, ShowInJson) {
  add_three();
  const Json shown = kedge_json("show step-000200 --prefix " + prefix_.directory(), 0);
  EXPECT_EQ(shown["kind"], "checkpoint");
  EXPECT_EQ(shown["attributes"], (Json{{"code", "heat2d 1.2"}, {"grid", {1280, 2048}}, {"step", 100}, {"time", 0.25}}));
  ASSERT_EQ(shown["arrays"].size(), 2U);
  EXPECT_EQ(shown["arrays"][1]["global_shape"], (Json{160, 64}));
  EXPECT_EQ(shown["arrays"][1]["blocks"], 4);
  EXPECT_EQ(shown["regions"].size(), 4U);
  ASSERT_EQ(shown["containers"].size(), 4U);
  EXPECT_EQ(shown["containers"][3]["file"], "data/0/rank-3.h5");
  EXPECT_EQ(shown["containers"][3]["bytes"], file_size(prefix_.container(sample_entry(2), 3)));
}

TEST_F(KedgeCheckpoints, ShowTellsWhatIsLeftOfADamagedCheckpoint) {
  add_three();
  std::filesystem::remove(prefix_.container(sample_entry(2), 1));
  const Result shown = on_prefix("show step-000200");
  EXPECT_EQ(shown.status, 1) << shown.text;
  EXPECT_THAT(shown.text, AllOf(HasSubstr("rank-1.h5: missing"), HasSubstr("3 of 4 containers can be used"),
                                ContainsRegex("temperature +float64 +160 x 64 +3 .*HOLE: 2560 elements are in no "
                                              "block, the first at \\(40, 0\\)\n")));
  EXPECT_THAT(kedge_json("show step-000200 --prefix " + prefix_.directory(), 1)["containers"][1]["problem"], "missing");
}

TEST_F(KedgeCheckpoints, WhatIsNotThereIsExplained) {
  add_three();
  const Result misspelt = on_prefix("show step-000203");
  EXPECT_EQ(misspelt.status, 2);
  EXPECT_THAT(misspelt.text, HasSubstr("did you mean step-000200?"));
  EXPECT_THAT(on_prefix("verify something-else").text, HasSubstr("the newest is step-000300"));
  write_containers(prefix_.directory(), sample_entry(4));
  for (const std::string& words :
       {"show step-000400 --prefix " + prefix_.directory(), "show " + prefix_.path(sample_entry(4).directory)}) {
    EXPECT_EQ(kedge(words).status, 2);
    EXPECT_THAT(kedge(words).text, HasSubstr("a flush or removal is in progress or was interrupted")) << words;
  }
  const SampleStore elsewhere;
  const Result nowhere = kedge_in(elsewhere.directory(), "show step-000200");
  EXPECT_EQ(nowhere.status, 2);
  EXPECT_THAT(nowhere.text, AllOf(HasSubstr("there is no file step-000200"), HasSubstr("--prefix")));
}

}  // namespace
}  // namespace kedge::testing::kedge_show_tag_test
