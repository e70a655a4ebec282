// kedge ls, show and verify on the checkpoints of a prefix: whole, half-written and damaged ones.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/text.hpp"
#include "format/container_reader.hpp"
#include "interop/kedge_program.hpp"
#include "interop/sample_prefix.hpp"
#include "persist/tag_folder.hpp"

namespace kedge::testing {
namespace {

using persist::TagEntry;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

class KedgeCheckpoints : public ::testing::Test {
 protected:
  void add_three() const {
    for (const unsigned generation : {1U, 2U, 3U}) prefix_.add(sample_entry(generation));
  }
  [[nodiscard]] std::string master(const TagEntry& entry) const {
    return prefix_.path(entry.folder) + "/checkpoint.h5";
  }
  [[nodiscard]] Result on_prefix(const std::string& words) const {
    return kedge(words + " --prefix " + prefix_.folder());
  }
  /// The damage is seen by tag, by folder and on the whole prefix.
  void expect_damaged(const TagEntry& entry, const std::string& what) const {
    for (const std::string& words : {"verify " + entry.tag + " --prefix " + prefix_.folder(),
                                     "verify " + prefix_.path(entry.folder), "verify " + prefix_.folder()}) {
      const Result verified = kedge(words);
      EXPECT_EQ(verified.status, 1) << what << ": " << verified.text;
      EXPECT_THAT(verified.text, AllOf(HasSubstr("DAMAGED"), HasSubstr(what))) << words;
    }
  }
  SamplePrefix prefix_;
};

// --- ls

TEST_F(KedgeCheckpoints, ListsNewestFirstWithParentsAndPins) {
  add_three();
  std::ofstream(prefix_.path(sample_entry(2).folder) + "/pinned");
  const Result listed = kedge("ls " + prefix_.folder());
  EXPECT_EQ(listed.status, 0) << listed.text;
  EXPECT_THAT(listed.text,
              ContainsRegex("^tag +generation +time .UTC. +ranks +bytes +level +parent +pinned\n"
                            "step-000300 +3 +2026-09-21 14:16:20 +4 +[0-9.]+ KiB +persistent +step-000200\n"
                            "step-000200 +2 +[^\n]* +step-000100 +pinned\n"
                            "step-000100 +1 +[^\n]* +-\n$"));
}

TEST_F(KedgeCheckpoints, AParentThatIsGoneIsToldByItsId) {
  prefix_.add(sample_entry(3));
  EXPECT_THAT(kedge("ls " + prefix_.folder()).text,
              HasSubstr(to_string(sample_entry(3).parent_commit_id).substr(0, 8)));
}

TEST_F(KedgeCheckpoints, GroupsByRun) {
  add_three();
  EXPECT_THAT(kedge("ls " + prefix_.folder()).text, Not(HasSubstr("run heat")));
  TagEntry other = sample_entry(9);
  other.run = "other";
  other.run_id.bytes.fill(0x77);
  prefix_.add(other);
  const std::string text = kedge("ls " + prefix_.folder()).text;
  EXPECT_LT(text.find("run heat"), text.find("step-000300"));
  EXPECT_LT(text.find("step-000100"), text.find("run other (7777"));
  EXPECT_LT(text.find("run other"), text.find("step-000900"));
}

TEST_F(KedgeCheckpoints, TheListIsTheSameFromCatalogAndMasters) {
  add_three();
  const std::string by_masters = kedge("ls " + prefix_.folder()).text;
  const Json listed = kedge_json("ls " + prefix_.folder(), 0);
  for (const unsigned generation : {1U, 2U, 3U}) {
    TagEntry entry = sample_entry(generation);
    entry.total_bytes = listed["checkpoints"][3 - generation]["bytes"];
    prefix_.catalog(entry);
  }
  EXPECT_EQ(kedge("ls " + prefix_.folder()).text, by_masters);
  flip_bit(master(sample_entry(2)), 700);  // not looked at
  EXPECT_EQ(kedge("ls " + prefix_.folder()).text, by_masters);
}

TEST_F(KedgeCheckpoints, JsonHasAllThatWordsHave) {
  add_three();
  write_containers(prefix_.folder(), sample_entry(4));
  const Json listed = kedge_json("ls " + prefix_.folder(), 0);
  EXPECT_EQ(listed["kind"], "prefix");
  ASSERT_EQ(listed["checkpoints"].size(), 3U);
  const Json& newest = listed["checkpoints"][0];
  EXPECT_EQ(newest["tag"], "step-000300");
  EXPECT_EQ(newest["parent"], "step-000200");
  EXPECT_EQ(newest["world_size"], 4);
  EXPECT_EQ(newest["time"], "2026-09-21T14:16:20Z");
  EXPECT_EQ(newest["commit_id"], to_string(sample_entry(3).commit_id));
  EXPECT_EQ(newest["pinned"], false);
  EXPECT_EQ(listed["checkpoints"][2]["parent"], nullptr);
  ASSERT_EQ(listed["unusable"].size(), 1U);
  EXPECT_EQ(listed["unusable"][0]["committed"], false);
  EXPECT_EQ(listed["unusable"][0]["state"], "not committed");
}

TEST_F(KedgeCheckpoints, HalfWrittenIsNoDamageAndDamageIs) {
  add_three();
  write_containers(prefix_.folder(), sample_entry(4));
  std::filesystem::create_directory(prefix_.path("step-9.9-01234567"));
  const Result half = kedge("ls " + prefix_.folder());
  EXPECT_EQ(half.status, 0) << half.text;
  EXPECT_THAT(half.text, ContainsRegex("step-000400[^\n]* not committed +no checkpoint.h5: a flush or removal is under "
                                       "way or was cut short\n"));
  truncate(master(sample_entry(2)), 5000);
  const Result damaged = kedge("ls " + prefix_.folder());
  EXPECT_EQ(damaged.status, 1) << damaged.text;
  EXPECT_THAT(damaged.text, ContainsRegex("step-000200[^\n]* DAMAGED +[^\n]*truncated"));
  EXPECT_THAT(damaged.text, AllOf(HasSubstr("step-000300"), HasSubstr("step-000100")));
}

TEST_F(KedgeCheckpoints, EmptyPrefixesAreEmptyAndOtherFoldersAreRefused) {
  const Result empty = kedge("ls " + prefix_.folder());
  EXPECT_EQ(empty.status, 0) << empty.text;
  EXPECT_THAT(empty.text, HasSubstr("no checkpoints in"));
  std::filesystem::create_directories(prefix_.path(".kedge/heat"));
  EXPECT_EQ(kedge("ls " + prefix_.folder()).status, 0);
  std::filesystem::remove_all(prefix_.path(".kedge"));
  std::filesystem::create_directories(prefix_.path("kedge-1000-heat"));
  const Result foreign = kedge("ls " + prefix_.folder());
  EXPECT_EQ(foreign.status, 2);
  EXPECT_THAT(foreign.text, AllOf(HasSubstr("neither a prefix"), HasSubstr("e.g. kedge-1000-heat")));
  const Result missing = kedge("ls " + prefix_.path("nothing"));
  EXPECT_EQ(missing.status, 2);
  EXPECT_THAT(missing.text, HasSubstr("no such folder"));
  std::ofstream(prefix_.path("notes")) << "x";
  EXPECT_THAT(kedge("ls " + prefix_.path("notes")).text, HasSubstr("it is a file"));
  EXPECT_THAT(kedge("ls " + prefix_.add(sample_entry(1))).text, HasSubstr("one checkpoint's folder"));
}

TEST_F(KedgeCheckpoints, WithoutArgumentThePrefixIsTheConfigurations) {
  prefix_.add(sample_entry(1));
  const SampleStore elsewhere;
  EXPECT_THAT(kedge_in(elsewhere.folder(), "ls", "KEDGE_PERSISTENT_PATH=" + prefix_.folder()).text,
              HasSubstr("step-000100"));
  const Result none = kedge_in(elsewhere.folder(), "ls");
  EXPECT_EQ(none.status, 2);
  EXPECT_THAT(none.text, AllOf(HasSubstr("./checkpoints"), HasSubstr("persistent.path")));
  EXPECT_EQ(kedge_in(elsewhere.folder(), "ls", "KEDGE_STORE_KEEP=0").status, 2);
}

TEST(KedgeStoreList, ListsCommitsOfAStoreAsFarAsThisNodeTells) {
  SampleStore store;
  auto identity = sample_identity();
  for (const std::uint32_t rank : {2U, 3U}) {
    identity.logical_rank = LogicalRank{rank};
    store.add(compose("rank-{}.0.h5", rank), sample_regions(), identity);
  }
  store.add_file("rank-2.1.h5", 8192, '\0');
  const Result listed = kedge("ls " + store.folder());
  EXPECT_EQ(listed.status, 0) << listed.text;
  EXPECT_THAT(listed.text, AllOf(ContainsRegex("step-000100 +7 +2026-09-21 14:13:20 +2 of 8 +[0-9.]+ MiB +local +-\n"),
                                 HasSubstr("1 file being written or free")));
  const Json json = kedge_json("ls " + store.folder(), 0);
  EXPECT_EQ(json["kind"], "store");
  EXPECT_EQ(json["checkpoints"][0]["ranks"], (Json{2, 3}));
  truncate(store.path("rank-3.0.h5"), 5000);
  const Result damaged = kedge("ls " + store.folder());
  EXPECT_EQ(damaged.status, 1);
  EXPECT_THAT(damaged.text, AllOf(HasSubstr("1 of 8"), ContainsRegex("rank-3.0.h5 +DAMAGED +[^\n]*truncated")));
}

// --- show

TEST_F(KedgeCheckpoints, R12_ShowsHeadAttributesArraysAndRegions) {
  add_three();
  const Result shown = on_prefix("show step-000200");
  EXPECT_EQ(shown.status, 0) << shown.text;
  EXPECT_THAT(shown.text, AllOf(ContainsRegex("tag +step-000200\n"), ContainsRegex("generation +2\n"),
                                ContainsRegex("run +heat \\([0-9a-f]{32}\\)\n"), ContainsRegex("ranks +4\n"),
                                ContainsRegex("written +2026-09-21T14:15:20Z\n"), ContainsRegex("HDF5 view +yes\n"),
                                ContainsRegex("parent +[0-9a-f]{32} \\(step-000100\\)\n")));
  EXPECT_THAT(shown.text, AllOf(ContainsRegex("code +heat2d 1.2\n"), ContainsRegex("grid +\\[1280,2048\\]\n"),
                                ContainsRegex("time +0.25\n")));
  EXPECT_THAT(shown.text, AllOf(ContainsRegex("temperature +float64 +160 x 64 +4 +80.0 KiB\n"),
                                ContainsRegex("fields/mask +bool +160 x 64 +4 ")));
  EXPECT_THAT(shown.text,
              AllOf(ContainsRegex("particles +float32 +differs +4 "), ContainsRegex("step +int64 +scalar +4 +32 B "),
                    ContainsRegex("seed +uint64 +4 +4 +128 B +replicated\n"),
                    ContainsRegex("model.pt +opaque +777 +1 +777 B +routed file\n")));
  EXPECT_THAT(shown.text, Not(HasSubstr("rank-0.h5")));
}

TEST_F(KedgeCheckpoints, ShowFindsACheckpointByTagFolderAndMaster) {
  add_three();
  const TagEntry entry = sample_entry(2);
  const std::string tag = on_prefix("show step-000200").text;
  EXPECT_EQ(on_prefix("show " + entry.folder).text, tag);
  EXPECT_EQ(kedge("show " + prefix_.path(entry.folder)).text, tag);
  EXPECT_EQ(kedge("show " + master(entry)).text, tag);
  EXPECT_THAT(on_prefix("show latest").text, HasSubstr("step-000300"));
  std::ofstream(prefix_.path("latest")) << entry.folder << "\n";
  EXPECT_EQ(kedge("show " + prefix_.path("latest")).text, tag);
  const Result by_tag = kedge_in(prefix_.folder(), "show step-000200", "KEDGE_PERSISTENT_PATH=" + prefix_.folder());
  EXPECT_EQ(by_tag.text, tag);
}

TEST_F(KedgeCheckpoints, ATagThatWasSavedTwiceIsTheNewer) {
  prefix_.add(sample_entry(1));
  TagEntry again = sample_entry(5);
  again.tag = sample_entry(1).tag;
  again.folder = persist::folder_name(again.tag, again.generation, again.commit_id);
  prefix_.add(again);
  EXPECT_THAT(on_prefix("show step-000100").text, ContainsRegex("generation +5\n"));
  truncate(master(again), 100);  // a damaged newest is what was meant, not silently the older
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

TEST_F(KedgeCheckpoints, ShowInJson) {
  add_three();
  const Json shown = kedge_json("show step-000200 --prefix " + prefix_.folder(), 0);
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
                                ContainsRegex("temperature +float64 +160 x 64 +3 ")));
  EXPECT_THAT(kedge_json("show step-000200 --prefix " + prefix_.folder(), 1)["containers"][1]["problem"], "missing");
}

TEST_F(KedgeCheckpoints, WhatIsNotThereIsExplained) {
  add_three();
  const Result misspelt = on_prefix("show step-000203");
  EXPECT_EQ(misspelt.status, 2);
  EXPECT_THAT(misspelt.text, HasSubstr("did you mean step-000200?"));
  EXPECT_THAT(on_prefix("verify something-else").text, HasSubstr("the newest is step-000300"));
  write_containers(prefix_.folder(), sample_entry(4));
  for (const std::string& words :
       {"show step-000400 --prefix " + prefix_.folder(), "show " + prefix_.path(sample_entry(4).folder)}) {
    EXPECT_EQ(kedge(words).status, 2);
    EXPECT_THAT(kedge(words).text, HasSubstr("a flush or removal is under way or was cut short")) << words;
  }
  const SampleStore elsewhere;
  const Result nowhere = kedge_in(elsewhere.folder(), "show step-000200");
  EXPECT_EQ(nowhere.status, 2);
  EXPECT_THAT(nowhere.text, AllOf(HasSubstr("no file is called step-000200"), HasSubstr("--prefix")));
}

// --- verify

TEST_F(KedgeCheckpoints, VerifiesByTagFolderAndPrefix) {
  add_three();
  for (const std::string& words :
       {"verify step-000200 --prefix " + prefix_.folder(), "verify " + prefix_.path(sample_entry(2).folder)}) {
    const Result verified = kedge(words);
    EXPECT_EQ(verified.status, 0) << verified.text;
    EXPECT_THAT(verified.text, AllOf(StartsWith("ok "), HasSubstr("step-000200: master and 4 containers"),
                                     HasSubstr("5 ok (masters 1, containers 4), 0 damaged")));
  }
  const Result all = kedge("verify " + prefix_.folder());
  EXPECT_EQ(all.status, 0) << all.text;
  EXPECT_THAT(all.text, HasSubstr("15 ok (masters 3, containers 12), 0 damaged"));
  EXPECT_LT(all.text.find("step-000300:"), all.text.find("step-000100:"));
  EXPECT_THAT(kedge("verify -q " + prefix_.folder()).text, IsEmpty());
  const Json json = kedge_json("verify step-000200 --prefix " + prefix_.folder(), 0);
  EXPECT_EQ(json["ok_masters"], 1);
  EXPECT_EQ(json["ok_containers"], 4);
  EXPECT_EQ(json["files"].size(), 5U);
  EXPECT_EQ(json["files"][0]["kind"], "master");
}

TEST_F(KedgeCheckpoints, R31_SeesAFlippedBitAnywhereInACheckpoint) {
  const TagEntry entry = sample_entry(1);
  prefix_.add(entry);
  for (const std::string& path : {master(entry), prefix_.container(entry, 2)}) {
    for (std::uint64_t at = 0; at < file_size(path); at += 997) {
      flip_bit(path, at);
      const Result verified = kedge("verify " + prefix_.path(entry.folder));
      EXPECT_EQ(verified.status, 1) << path << " " << at << " " << verified.text;
      EXPECT_THAT(verified.text, HasSubstr("DAMAGED  " + path)) << at;
      flip_bit(path, at);
    }
  }
  EXPECT_EQ(kedge("verify " + prefix_.folder()).status, 0);
}

TEST_F(KedgeCheckpoints, NamesTheRegionThatIsDamaged) {
  const TagEntry entry = sample_entry(1);
  prefix_.add(entry);
  const Json shown = kedge_json("show " + prefix_.container(entry, 2), 0);
  flip_bit(prefix_.container(entry, 2), shown["regions"][0]["offset"].get<std::uint64_t>() + 100);
  expect_damaged(entry, "region 'temperature' in bytes");
}

TEST_F(KedgeCheckpoints, NamesWhatIsMissingTruncatedOrAppended) {
  const TagEntry entry = sample_entry(1);
  prefix_.add(entry);
  const std::string path = prefix_.container(entry, 1);
  const std::uint64_t whole = file_size(path);
  for (const std::uint64_t size : {whole - 1, whole / 2, std::uint64_t{4096}, std::uint64_t{4095}, std::uint64_t{0}}) {
    truncate(path, size);
    expect_damaged(entry, compose("truncated: {} of its {} bytes are left", size, whole));
    prefix_.add(entry);
  }
  truncate(path, whole + 5);
  expect_damaged(entry, "5 bytes were appended");
  std::filesystem::remove(path);
  expect_damaged(entry, "rank-1.h5  missing");
  std::filesystem::remove_all(prefix_.path(entry.folder) + "/data");
  expect_damaged(entry, "missing, and so is its folder");
}

TEST_F(KedgeCheckpoints, NamesContainersOfAnotherRankTagOrRun) {
  add_three();
  const TagEntry entry = sample_entry(2);
  const auto put = [&](const std::string& from) {
    const std::string path = prefix_.container(entry, 1);
    std::filesystem::copy_file(from, path, std::filesystem::copy_options::overwrite_existing);
  };
  put(prefix_.container(entry, 3));
  expect_damaged(entry, "swapped: it is the container of rank 3");
  put(prefix_.container(sample_entry(1), 1));
  expect_damaged(entry, "swapped: it is the container of rank 1 of step-000100 (generation 1, commit");
  SamplePrefix others;
  TagEntry foreign = entry;
  foreign.run_id.bytes.fill(0x55);
  others.add(foreign);
  put(others.container(foreign, 1));
  expect_damaged(entry, "of another run");
}

TEST_F(KedgeCheckpoints, SeesAContainerThatIsWholeButOfAnotherContent) {
  const TagEntry entry = sample_entry(1);
  prefix_.add(entry);
  const std::string path = prefix_.container(entry, 1);
  format::Superblock identity;
  std::vector<format::RegionSpec> regions;
  {
    const auto file = fs::posix_file_system()->open(path, fs::Access::read);
    const format::ContainerReader reader(*file, file_size(path), path);
    identity = reader.superblock();
    for (const auto& region : reader.regions()) regions.push_back(region.spec);
  }
  write_container(path, regions, identity, 1);
  expect_damaged(entry, "its content is not what the master was made for");
}

TEST_F(KedgeCheckpoints, AMasterOfAnotherTagIsDamage) {
  add_three();
  std::filesystem::copy_file(master(sample_entry(1)), master(sample_entry(2)),
                             std::filesystem::copy_options::overwrite_existing);
  expect_damaged(sample_entry(2), "this is the master of " + sample_entry(1).folder);
}

TEST_F(KedgeCheckpoints, FollowsNoLinkInsideOfACheckpoint) {
  const TagEntry entry = sample_entry(1);
  prefix_.add(entry);
  const std::string data = prefix_.path(entry.folder) + "/data";
  std::filesystem::rename(data, prefix_.path("moved"));
  std::filesystem::create_directory_symlink(prefix_.path("moved"), data);
  const Result linked = kedge("verify " + prefix_.path(entry.folder));
  EXPECT_EQ(linked.status, 2) << linked.text;
  EXPECT_THAT(linked.text, HasSubstr("symbolic link"));
}

TEST_F(KedgeCheckpoints, ACheckpointThatIsNotCommittedIsNoDamageButNothingWasChecked) {
  write_containers(prefix_.folder(), sample_entry(4));
  const Result verified = kedge("verify " + prefix_.path(sample_entry(4).folder));
  EXPECT_EQ(verified.status, 2) << verified.text;
  EXPECT_THAT(verified.text, AllOf(HasSubstr("1 not committed"), HasSubstr("nothing was checked")));
  prefix_.add(sample_entry(1));
  EXPECT_EQ(kedge("verify " + prefix_.folder()).status, 0);
}

TEST_F(KedgeCheckpoints, ACopyUnderAnyNameIsVerifiedWhereItLies) {
  const TagEntry entry = sample_entry(1);
  prefix_.add(entry);
  const SampleStore elsewhere;
  std::filesystem::copy(prefix_.path(entry.folder), elsewhere.path("my-copy"),
                        std::filesystem::copy_options::recursive);
  EXPECT_EQ(kedge("verify " + elsewhere.path("my-copy")).status, 0);
  EXPECT_EQ(kedge_in(elsewhere.folder(), "verify my-copy").status, 0);
  EXPECT_EQ(kedge("show " + elsewhere.path("my-copy")).status, 0);
}

}  // namespace
}  // namespace kedge::testing
