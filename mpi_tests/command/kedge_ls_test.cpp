// kedge ls on whole, half-written, damaged, sparse and foreign directories: flushes that failed, stores that know more
// than the prefix, and which of several runs of a name is the present one.
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/clock.hpp"
#include "base/text.hpp"
#include "command/checkpoints_fixture.hpp"
#include "persist/run_record.hpp"
#include "persist/run_start.hpp"
#include "store/failed_flush.hpp"
#include "store/store_record.hpp"

namespace kedge::testing::kedge_ls_test {
namespace {

using persist::TagEntry;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

TEST_F(KedgeCheckpoints, ListsNewestFirstWithParentsAndPins) {
  add_three();
  std::ofstream(prefix_.path(sample_entry(2).directory) + "/pinned") << "\n";
  const Result listed = kedge("ls " + prefix_.directory());
  EXPECT_EQ(listed.status, 0) << listed.text;
  EXPECT_THAT(listed.text, ContainsRegex("^tag +gen. +time .UTC. +ranks +bytes +note +parent +directory\n"
                                         "step-000300 +3 +2026-09-21 14:16:20 +4 +[0-9.]+ KiB +- +step-000200 +" +
                                         sample_entry(3).directory +
                                         "\n"
                                         "step-000200 +2 +[^\n]* +pinned +step-000100 +[^\n]*\n"
                                         "step-000100 +1 +[^\n]* +- +step-000100.1-[0-9a-f]+\n$"));
}

TEST(KedgeStore, SparseFilesOfATebibyteAreToldAndNotRead) {
  const std::string directory = ::testing::TempDir() + "kedge-sparse-store";
  std::filesystem::remove_all(directory);
  std::filesystem::create_directories(directory);
  for (const char* name : {"rank-0.0.h5", "parity-0.0.kedge", "set-0.0.kedge"}) {
    const std::string path = fs::join(directory, name);
    std::ofstream(path) << (name == std::string("rank-0.0.h5") ? "no header" : "");
    std::filesystem::resize_file(path, std::uintmax_t{1} << 40U);
    const Result verified = kedge("verify " + path);
    EXPECT_NE(verified.status, 0) << verified.text;
  }
  const Result listed = kedge("ls " + directory);
  EXPECT_EQ(listed.status, 1) << listed.text;
  EXPECT_THAT(listed.text, HasSubstr("rank-0.0.h5"));
  EXPECT_EQ(kedge("verify " + directory).status, 1);
  std::filesystem::remove_all(directory);
}

TEST_F(KedgeCheckpoints, AParentThatIsGoneIsToldByItsId) {
  prefix_.add(sample_entry(3));
  EXPECT_THAT(kedge("ls " + prefix_.directory()).text,
              HasSubstr(to_string(sample_entry(3).commit.parent_id).substr(0, 8)));
}

TEST_F(KedgeCheckpoints, GroupsByRun) {
  add_three();
  EXPECT_THAT(kedge("ls " + prefix_.directory()).text, Not(HasSubstr("run heat")));
  TagEntry other = sample_entry(9);
  other.run = "other";
  other.commit.run_id.bytes.fill(0x77);
  prefix_.add(other);
  const std::string text = kedge("ls " + prefix_.directory()).text;
  EXPECT_LT(text.find("run heat"), text.find("step-000300"));
  EXPECT_LT(text.find("step-000100"), text.find("run other (7777"));
  EXPECT_LT(text.find("run other"), text.find("step-000900"));
}

TEST_F(KedgeCheckpoints, TheListIsTheSameFromCatalogAndManifests) {
  add_three();
  const std::string by_manifests = kedge("ls " + prefix_.directory()).text;
  const Json listed = kedge_json("ls " + prefix_.directory(), 0);
  for (const unsigned generation : {1U, 2U, 3U}) {
    TagEntry entry = sample_entry(generation);
    entry.total_bytes = listed["checkpoints"][3 - generation]["bytes"];
    prefix_.catalog(entry);
  }
  EXPECT_EQ(kedge("ls " + prefix_.directory()).text, by_manifests);
  flip_bit(manifest(sample_entry(2)), 700);  // not looked at
  EXPECT_EQ(kedge("ls " + prefix_.directory()).text, by_manifests);
}

TEST_F(KedgeCheckpoints, JsonHasAllThatWordsHave) {
  add_three();
  write_containers(prefix_.directory(), sample_entry(4));
  const Json listed = kedge_json("ls " + prefix_.directory(), 0);
  EXPECT_EQ(listed["kind"], "prefix");
  ASSERT_EQ(listed["checkpoints"].size(), 3U);
  const Json& newest = listed["checkpoints"][0];
  EXPECT_EQ(newest["tag"], "step-000300");
  EXPECT_EQ(newest["parent"], "step-000200");
  EXPECT_EQ(newest["world_size"], 4);
  EXPECT_EQ(newest["time"], "2026-09-21T14:16:20Z");
  EXPECT_EQ(newest["commit_id"], to_string(sample_entry(3).commit.id));
  EXPECT_EQ(newest["pinned"], false);
  EXPECT_EQ(listed["checkpoints"][2]["parent"], nullptr);
  ASSERT_EQ(listed["unusable"].size(), 1U);
  EXPECT_EQ(listed["unusable"][0]["committed"], false);
  EXPECT_EQ(listed["unusable"][0]["state"], "not committed");
}

TEST_F(KedgeCheckpoints, HalfWrittenIsNoDamageAndDamageIs) {
  add_three();
  write_containers(prefix_.directory(), sample_entry(4));
  std::filesystem::create_directory(prefix_.path("step-9.9-01234567"));
  const Result half = kedge("ls " + prefix_.directory());
  EXPECT_EQ(half.status, 0) << half.text;
  EXPECT_THAT(half.text, ContainsRegex("step-000400[^\n]* not committed +no checkpoint.h5: a flush or removal is in "
                                       "progress or was interrupted\n"));
  truncate(manifest(sample_entry(2)), 5000);
  const Result damaged = kedge("ls " + prefix_.directory());
  EXPECT_EQ(damaged.status, 1) << damaged.text;
  EXPECT_THAT(damaged.text, ContainsRegex("step-000200[^\n]* DAMAGED +[^\n]*truncated"));
  EXPECT_THAT(damaged.text, AllOf(HasSubstr("step-000300"), HasSubstr("step-000100")));
}

TEST_F(KedgeCheckpoints, EmptyPrefixesAreEmptyAndOtherDirectoriesAreRefused) {
  const Result empty = kedge("ls " + prefix_.directory());
  EXPECT_EQ(empty.status, 0) << empty.text;
  EXPECT_THAT(empty.text, HasSubstr("no checkpoints in"));
  std::filesystem::create_directories(prefix_.path(".kedge/heat"));
  EXPECT_EQ(kedge("ls " + prefix_.directory()).status, 0);
  std::filesystem::remove_all(prefix_.path(".kedge"));
  std::filesystem::create_directories(prefix_.path("kedge-1000-heat"));
  const Result foreign = kedge("ls " + prefix_.directory());
  EXPECT_EQ(foreign.status, 2);
  EXPECT_THAT(foreign.text, AllOf(HasSubstr("neither a prefix"), HasSubstr("e.g. kedge-1000-heat")));
  const Result missing = kedge("ls " + prefix_.path("nothing"));
  EXPECT_EQ(missing.status, 2);
  EXPECT_THAT(missing.text, HasSubstr("no such directory"));
  std::ofstream(prefix_.path("notes")) << "x";
  EXPECT_THAT(kedge("ls " + prefix_.path("notes")).text, HasSubstr("it is a file"));
  EXPECT_THAT(kedge("ls " + prefix_.add(sample_entry(1))).text, HasSubstr("the directory of one checkpoint"));
}

TEST_F(KedgeCheckpoints, WithoutArgumentThePrefixIsTheConfigurations) {
  prefix_.add(sample_entry(1));
  const SampleStore elsewhere;
  EXPECT_THAT(kedge_in(elsewhere.directory(), "ls", "KEDGE_PERSISTENT_PATH=" + prefix_.directory()).text,
              HasSubstr("step-000100"));
  const Result none = kedge_in(elsewhere.directory(), "ls");
  EXPECT_EQ(none.status, 2);
  EXPECT_THAT(none.text, AllOf(HasSubstr("./checkpoints"), HasSubstr("persistent.path")));
  EXPECT_EQ(kedge_in(elsewhere.directory(), "ls", "KEDGE_STORE_KEEP=0").status, 2);
}

std::uint64_t storage_bytes(const std::string& path) {
  struct stat status {};
  EXPECT_EQ(::stat(path.c_str(), &status), 0);
  return static_cast<std::uint64_t>(status.st_blocks) * 512;
}

TEST(KedgeStoreList, ListsCommitsOfAStoreAsFarAsThisNodeTells) {
  SampleStore store;
  auto identity = sample_identity();
  for (const std::uint32_t rank : {2U, 3U}) {
    identity.logical_rank = LogicalRank{rank};
    store.add(compose("rank-{}.0.h5", rank), sample_regions(), identity);
  }
  store.add_file("rank-2.1.h5", 8192, '\0');
  const Result listed = kedge("ls " + store.directory());
  EXPECT_EQ(listed.status, 0) << listed.text;
  EXPECT_THAT(listed.text, AllOf(ContainsRegex("step-000100 +7 +2026-09-21 14:13:20 +2 of 8 +[0-9.]+ MiB +local +-\n"),
                                 HasSubstr("1 file being written or free")));
  const Json json = kedge_json("ls " + store.directory(), 0);
  EXPECT_EQ(json["kind"], "store");
  EXPECT_EQ(json["checkpoints"][0]["ranks"], (Json{2, 3}));
  std::uint64_t storage = 0;
  for (const char* name : {"rank-2.0.h5", "rank-3.0.h5", "rank-2.1.h5"}) storage += storage_bytes(store.path(name));
  EXPECT_EQ(json["storage_bytes"], storage);
  EXPECT_THAT(listed.text,
              ContainsRegex("\nstorage taken: [0-9.]+ [KM]iB, 1.[0-9] times the newest checkpoint here\n"));
  truncate(store.path("rank-3.0.h5"), 5000);
  const Result damaged = kedge("ls " + store.directory());
  EXPECT_EQ(damaged.status, 1);
  EXPECT_THAT(damaged.text, AllOf(HasSubstr("1 of 8"), ContainsRegex("rank-3.0.h5 +DAMAGED +[^\n]*truncated")));
}

store::FailedFlush failed_flush(const Id128& commit_id) {
  const std::int64_t then_ns = system_clock()->wall_ns() - std::int64_t{125} * 1'000'000'000;
  return {commit_id, sample_identity().commit.generation, "step-000100", then_ns, 4, "no_space on rank 2: it is full"};
}

TEST(KedgeStoreList, ShowsAFlushThatFailedOfACommitThatIsHere) {
  SampleStore store;
  store.add("rank-2.0.h5", sample_regions(), sample_identity());
  std::ofstream(store.path("flush-failed")) << store::to_text(failed_flush(sample_identity().commit.id));
  const Result listed = kedge("ls " + store.directory());
  EXPECT_EQ(listed.status, 0) << listed.text;
  EXPECT_THAT(listed.text, ContainsRegex("\nstep-000100: flush failed 2 min [0-9]+ s ago .tried 4 times.: no_space on "
                                         "rank 2: it is full\n"));
  const Json json = kedge_json("ls " + store.directory(), 0);
  EXPECT_EQ(json["checkpoints"][0]["flush_failed"]["tries"], 4);
  EXPECT_EQ(json["checkpoints"][0]["flush_failed"]["reason"], "no_space on rank 2: it is full");
  for (const std::string& other : {store::to_text(failed_flush({})), std::string("half a rec")}) {
    std::ofstream(store.path("flush-failed")) << other;
    const Result without = kedge("ls " + store.directory());
    EXPECT_EQ(without.status, 0) << without.text;
    EXPECT_THAT(without.text, Not(HasSubstr("flush failed")));
  }
}

TEST_F(KedgeCheckpoints, OfAPrefixShowsFlushesThatFailedOnThisNode) {
  add_three();
  const SampleStore root;
  const std::string directory = root.path(compose("kedge-{}-heat-01234567", ::geteuid()));
  std::filesystem::create_directory(directory);
  ASSERT_EQ(::chmod(directory.c_str(), 0700), 0);
  const Id128 id = sample_identity().commit.id;
  const auto write = [&](const std::string& prefix, const Id128& commit_id) {
    std::ofstream(directory + "/run") << store::to_text(store::StoreRecord{id, id, prefix});
    std::ofstream(directory + "/flush-failed") << store::to_text(failed_flush(commit_id));
  };
  const std::string prefix = std::filesystem::canonical(prefix_.directory());
  const auto listed = [&](const std::string& words) {
    return kedge_in(root.directory(), words + prefix, "TMPDIR=" + root.directory()).text;
  };
  write(prefix, id);
  EXPECT_THAT(listed("ls "), ContainsRegex("step-000300 [^@]*\nstep-000100: flush failed 2 min [0-9]+ s ago"));
  EXPECT_EQ(Json::parse(listed("ls --json "))["flushes_failed"][0]["commit_id"], to_string(id));
  write(prefix, sample_entry(2).commit.id);
  EXPECT_THAT(listed("ls "), Not(HasSubstr("flush failed"))) << "it came here by another way";
  write(prefix + "/other", id);
  EXPECT_THAT(listed("ls "), Not(HasSubstr("flush failed"))) << "of another prefix";
}

/// A store of run heat on this node, which flushes to the prefix.
class KedgeLsWithStore : public KedgeCheckpoints {
 protected:
  void SetUp() override {
    add_three();
    directory_ = root_.path(compose("kedge-{}-heat-01234567", ::geteuid()));
    std::filesystem::create_directory(directory_);
    ASSERT_EQ(::chmod(directory_.c_str(), 0700), 0);
    prefix_path_ = std::filesystem::canonical(prefix_.directory());
    const Id128 run_id = sample_entry(1).commit.run_id;
    std::ofstream(directory_ + "/run") << store::to_text(store::StoreRecord{run_id, run_id, prefix_path_});
  }
  void hold(const CommitHead& commit, unsigned number) const {
    format::Superblock identity = sample_identity();
    identity.commit = commit;
    write_container(compose("{}/rank-2.{}.h5", directory_, number), sample_regions(), identity);
  }
  static CommitHead output(unsigned generation, const Tag& tag) {
    CommitHead commit = sample_entry(generation).commit;
    commit.is_output = true;
    commit.tag = tag;
    return commit;
  }
  [[nodiscard]] Result listed(const std::string& words) const {
    return kedge_in(root_.directory(), words + prefix_path_, "TMPDIR=" + root_.directory());
  }
  [[nodiscard]] std::string news() const {
    const Result result = listed("ls ");
    EXPECT_EQ(result.status, 0) << result.text;
    const std::size_t at = result.text.find("a store on this node");
    return at == std::string::npos ? "" : result.text.substr(at);
  }

  SampleStore root_;
  std::string directory_;
  std::string prefix_path_;
};

TEST_F(KedgeLsWithStore, SaysWhatAStoreOfThisNodeHasThatThePrefixHasNot) {
  EXPECT_EQ(news(), "");
  hold(sample_entry(3).commit, 0);
  EXPECT_EQ(news(), "") << "the prefix has it";
  hold(sample_entry(5).commit, 1);
  hold(sample_entry(4).commit, 2);
  EXPECT_EQ(news(), "a store on this node has a newer checkpoint, step-000500 (generation 5); see kedge ls " +
                        directory_ + "\n");
  hold(output(2, "plot"), 3);
  EXPECT_THAT(news(), HasSubstr("(generation 5)")) << "an output that is on the prefix";
  CommitHead older = output(2, "plot-2");
  older.id.bytes.fill(0x22);
  hold(older, 3);
  EXPECT_THAT(news(), HasSubstr("(generation 5), and output that is not here: plot-2; see kedge ls "));
  const Json json = Json::parse(listed("ls --json ").text)["stores"];
  ASSERT_EQ(json.size(), 1U);
  EXPECT_EQ(json[0]["directory"], directory_);
  ASSERT_EQ(json[0]["newer"].size(), 2U);
  EXPECT_EQ(json[0]["newer"][0]["tag"], "step-000500");
  EXPECT_EQ(json[0]["newer"][1]["output"], true);
}

TEST_F(KedgeLsWithStore, OfARunThatWasGivenUpSaysNothing) {
  hold(sample_entry(5).commit, 0);
  EXPECT_NE(news(), "");
  const persist::RunStart start({fs::posix_file_system(), prefix_path_, "heat"});
  persist::RunRecord record;
  record.run_id.bytes.fill(0x11);
  record.prefix_id.bytes.fill(0x12);
  record.prefix = prefix_path_;
  record.given_up_runs = {sample_entry(1).commit.run_id};
  persist::write_run_record(start, record);
  EXPECT_EQ(news(), "");
  EXPECT_EQ(Json::parse(listed("ls --json ").text)["stores"][0]["newer"].size(), 0U);
}

TEST_F(KedgeCheckpoints, SaysWhichOfTwoRunsOfOneNameIsThePresentOne) {
  add_three();
  TagEntry newer = sample_entry(9);
  newer.commit.run_id.bytes.fill(0x77);
  const std::string prefix = std::filesystem::canonical(prefix_.directory());
  const persist::RunStart start({fs::posix_file_system(), prefix, "heat"});
  persist::RunRecord record;
  record.run_id = newer.commit.run_id;
  record.prefix_id.bytes.fill(0x12);
  record.prefix = prefix;
  record.given_up_runs = {sample_entry(1).commit.run_id};
  persist::write_run_record(start, record);
  const auto listed = [&] { return kedge("ls " + prefix).text; };
  // None of what there is would be continued.
  EXPECT_EQ(listed().find("run heat (" + to_string(sample_entry(1).commit.run_id) +
                          "): an older run, given up by start = fresh or adopt\n"),
            0U)
      << listed();
  prefix_.add(newer);
  EXPECT_THAT(listed(), HasSubstr("run heat (77777777777777777777777777777777): the prefix's current run\ntag"));
  EXPECT_THAT(listed(), HasSubstr("): an older run, given up by start = fresh or adopt\ntag"));
  EXPECT_LT(listed().find("the prefix's current run"), listed().find("an older run"));
  std::istringstream lines(shell("'" KEDGE_PROGRAM "' ls " + prefix).text);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80U) << line;
  const Json json = kedge_json("ls " + prefix, 0)["checkpoints"];
  EXPECT_EQ(json[0]["run_state"], "present");
  EXPECT_EQ(json[3]["run_state"], "given_up");
}

}  // namespace
}  // namespace kedge::testing::kedge_ls_test
