// kedge drop: what it lists, what it removes, and what it leaves alone: stores that a job uses, other jobs' stores; by
// store, by run, by job of a batch system.
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/text.hpp"
#include "command/checkpoints_fixture.hpp"
#include "store/location.hpp"
#include "store/store_record_files.hpp"

namespace kedge::testing::kedge_drop_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class KedgeDrop : public KedgeCheckpoints {
 protected:
  /// A store of the run on "/some where/checkpoints", with two containers in it.
  [[nodiscard]] std::string add_store(const std::string& run, std::uint8_t id,
                                      const std::string& prefix = "/some where/checkpoints") const {
    store::StoreOwner owner{run, {}, {}, prefix};
    owner.run_id.bytes.fill(id);
    owner.prefix_id = owner.run_id;
    const store::LocationOptions here{root_.directory(), "n", {}};
    const auto location = store::find_or_make_store(*system_, root_.directory(), here, owner);
    store::StoreRecordFiles records(system_, location, {0});
    records.write_owner({owner.run_id, owner.prefix_id, owner.prefix});
    records.write_commit_marker(owner.run_id);
    for (const char* name : {"rank-0.0.h5", "parity-0.0.kedge", "lock.3.0"}) {
      std::ofstream(location.directory + "/" + name) << std::string(1000, 'x');
    }
    return location.directory;
  }

  SampleStore root_;
  std::shared_ptr<fs::FileSystem> system_ = fs::posix_file_system();
};

TEST_F(KedgeDrop, OfAJobFreesWhatThatUsedLast) {
  const std::string own = add_store("heat", 1);
  const std::string other = add_store("snow", 1);
  const std::string nobodys = add_store("rain", 1);
  std::ofstream(own + "/job-7.server") << "";
  std::ofstream(other + "/job-8") << "";
  const std::string words = "drop --job 7.server " + own + " " + other + " " + nobodys;
  const Result asked = kedge(words + " </dev/null");
  EXPECT_EQ(asked.status, 2);
  EXPECT_THAT(asked.text, HasSubstr("use --yes"));
  const Result dropped = kedge(words + " " + root_.directory() + "/missing --yes");
  EXPECT_EQ(dropped.status, 2) << "of the one that is missing";
  EXPECT_THAT(dropped.text, AllOf(HasSubstr("freed " + own), HasSubstr("kept " + other + ": job 8 used it last"),
                                  HasSubstr("kept " + nobodys + ": no job is recorded"), HasSubstr("check the path")));
  EXPECT_FALSE(std::filesystem::exists(own));
  EXPECT_TRUE(std::filesystem::exists(other) && std::filesystem::exists(nobodys));
  EXPECT_THAT(kedge("drop --job 7 --run heat").text, HasSubstr("either stores, or a run"));
}

TEST_F(KedgeDrop, ListsAStoreAndRemovesItIfToldSo) {
  const std::string store = add_store("heat", 1);
  const std::string other = add_store("heat", 2);
  const Result refused = kedge("drop " + store + " </dev/null");
  EXPECT_EQ(refused.status, 2);
  EXPECT_THAT(refused.text, AllOf(HasSubstr(store), HasSubstr("01010101"), HasSubstr("/some where/checkpoints"),
                                  HasSubstr("3.0 KiB"), HasSubstr("nothing was removed"), HasSubstr("use --yes")));
  EXPECT_TRUE(std::filesystem::exists(store + "/rank-0.0.h5"));
  const Result dropped = kedge("drop --yes " + store);
  EXPECT_EQ(dropped.status, 0) << dropped.text;
  EXPECT_THAT(dropped.text, HasSubstr("freed " + store));
  EXPECT_FALSE(std::filesystem::exists(store));
  EXPECT_TRUE(std::filesystem::exists(other + "/rank-0.0.h5"));
}

TEST_F(KedgeDrop, RoutedFilesGoWithTheStore) {
  const std::string store = add_store("heat", 1);
  std::filesystem::create_directories(store + "/routed-0.3/out/deep");
  std::ofstream(store + "/routed-0.3/out/deep/restart") << std::string(500'000, 'x');
  std::filesystem::create_directories(root_.directory() + "/elsewhere");
  std::ofstream(root_.directory() + "/elsewhere/mine") << "mine";
  std::filesystem::create_symlink(root_.directory() + "/elsewhere", store + "/routed-0.3/link");
  EXPECT_THAT(kedge("drop " + store + " </dev/null").text, HasSubstr("491."));
  EXPECT_THAT(kedge("ls " + store).text, HasSubstr("routed files of a job: 2 (488.3 KiB)"));
  const Result dropped = kedge("drop --yes " + store);
  EXPECT_EQ(dropped.status, 0) << dropped.text;
  EXPECT_FALSE(std::filesystem::exists(store));
  EXPECT_TRUE(std::filesystem::exists(root_.directory() + "/elsewhere/mine")) << "links are not followed";
}

TEST_F(KedgeDrop, AStoreInUseIsRefused) {
  const std::string store = add_store("heat", 1);
  const auto lock = system_->try_lock(store + "/lock.4.0", "incarnation 4, rank 0, process 77");
  ASSERT_TRUE(lock);
  const Result refused = kedge("drop --yes " + store);
  EXPECT_EQ(refused.status, 75) << "it may be free later";
  EXPECT_THAT(refused.text, AllOf(HasSubstr("in use by a job"), HasSubstr("process 77")));
  EXPECT_TRUE(std::filesystem::exists(store + "/rank-0.0.h5"));
}

TEST_F(KedgeDrop, WhatIsNotKedgesStays) {
  const std::string store = add_store("heat", 1);
  std::ofstream(store + "/run-notes.txt") << "mine";
  std::filesystem::create_directory(store + "/rank-7.0.h5");
  const Result dropped = kedge("drop -y " + store);
  EXPECT_EQ(dropped.status, 2) << dropped.text;
  EXPECT_THAT(dropped.text, HasSubstr("is not removed: 2 files not written by Kedge remain"));
  EXPECT_FALSE(std::filesystem::exists(store + "/rank-0.0.h5"));
  EXPECT_TRUE(std::filesystem::exists(store + "/run-notes.txt"));
}

TEST_F(KedgeDrop, OnlyStoresOfThisUserAreTakenForOne) {
  const std::string store = add_store("heat", 1);
  EXPECT_THAT(kedge("drop --yes " + root_.directory() + "/missing").text, HasSubstr("check the path"));
  EXPECT_THAT(kedge("drop --yes " + root_.directory()).text, HasSubstr("not a store"));
  std::filesystem::permissions(store, std::filesystem::perms::all);
  EXPECT_THAT(kedge("drop --yes " + store).text, HasSubstr("not a store of yours"));
  std::filesystem::permissions(store, std::filesystem::perms::owner_all);
  std::ofstream(store + "/run") << "half a rec";
  EXPECT_THAT(kedge("drop --yes " + store).text, HasSubstr("no valid file 'run'"));
  EXPECT_TRUE(std::filesystem::exists(store + "/rank-0.0.h5"));
}

TEST_F(KedgeDrop, LsOfAnEmptyPrefixNamesTheStoresOfItsJobs) {
  const std::string store = add_store("heat", 1, system_->canonical(prefix_.directory()));
  const Result listed = kedge_in("/", "ls " + prefix_.directory(), "TMPDIR=" + root_.directory());
  EXPECT_EQ(listed.status, 0) << listed.text;
  EXPECT_THAT(listed.text, AllOf(HasSubstr("no checkpoints in"), HasSubstr("kedge ls " + store)));
}

TEST_F(KedgeDrop, WithoutArgumentsListsTheStoresInTheUsualPlaces) {
  const std::string store = add_store("heat", 1);
  const Result listed = kedge_in("/", "drop", "TMPDIR=" + root_.directory());
  EXPECT_EQ(listed.status, 0) << listed.text;
  EXPECT_THAT(listed.text, HasSubstr(store));
  EXPECT_TRUE(std::filesystem::exists(store + "/rank-0.0.h5"));
}

TEST_F(KedgeDrop, ARunOnAPrefixGoesAndTheOthersStay) {
  add_three();
  persist::TagEntry other = sample_entry(4);
  other.run = "ice";
  other.commit.run_id.bytes.fill(9);
  prefix_.add(other);
  const std::string words = "drop --run heat --prefix " + prefix_.directory();
  const Result refused = kedge(words + " </dev/null");
  EXPECT_EQ(refused.status, 2);
  EXPECT_THAT(refused.text, AllOf(HasSubstr("step-000100"), HasSubstr("step-000300"), Not(HasSubstr("step-000400")),
                                  HasSubstr("3 checkpoints"), HasSubstr("use --yes")));
  EXPECT_THAT(refused.text, HasSubstr(to_string(sample_entry(1).commit.run_id).substr(0, 8)));
  const auto name_latest = [&](const std::string& directory) {
    std::ofstream(prefix_.path("latest")) << directory << "\n";
  };
  name_latest(sample_entry(3).directory);
  const std::string own = add_store("heat", 1, system_->canonical(prefix_.directory()));
  const std::string of_node = add_store("heat", 3, system_->canonical(prefix_.directory())) + "@node7";
  std::filesystem::rename(of_node.substr(0, of_node.rfind('@')), of_node);
  const std::string alike = add_store("heat-fine", 2, system_->canonical(prefix_.directory()));
  const std::string elsewhere = add_store("heat", 4);
  const Result dropped = kedge_in("/", words + " --yes", "TMPDIR=" + root_.directory());
  EXPECT_THAT(dropped.text, AllOf(HasSubstr("kedge drop " + own), HasSubstr(of_node), Not(HasSubstr(alike)),
                                  Not(HasSubstr(elsewhere))));
  EXPECT_EQ(dropped.status, 0) << dropped.text;
  EXPECT_FALSE(std::filesystem::exists(prefix_.path("latest"))) << "it named one that is gone";
  EXPECT_FALSE(std::filesystem::exists(prefix_.path(sample_entry(1).directory)));
  EXPECT_FALSE(std::filesystem::exists(prefix_.path(".kedge/heat")));
  EXPECT_TRUE(std::filesystem::exists(prefix_.path(other.directory) + "/checkpoint.h5"));
  name_latest(other.directory);
  add_three();
  EXPECT_EQ(kedge(words + " --yes").status, 0);
  EXPECT_TRUE(std::filesystem::exists(prefix_.path("latest"))) << "it names another run's";
  const Result unknown = kedge("drop --run snow --prefix " + prefix_.directory());
  EXPECT_EQ(unknown.status, 2);
  EXPECT_THAT(unknown.text, HasSubstr("there is no run 'snow' on this prefix"));
}

TEST_F(KedgeDrop, SaysWhichArePinnedAndWhatCouldNotBeRead) {
  add_three();
  std::ofstream(prefix_.path(sample_entry(2).directory) + "/pinned") << "";
  const std::string damaged = prefix_.path(sample_entry(1).directory);
  std::ofstream(damaged + "/checkpoint.h5") << "not a manifest";
  std::filesystem::remove_all(prefix_.path(".kedge/heat/catalog"));
  const std::string words = "drop --run heat --prefix " + prefix_.directory();
  EXPECT_THAT(kedge(words + " </dev/null").text, ::testing::ContainsRegex("step-000200 .* pinned"));
  const Result dropped = kedge(words + " --yes");
  EXPECT_EQ(dropped.status, 2) << dropped.text;
  EXPECT_THAT(dropped.text, AllOf(HasSubstr(damaged + " is not removed"), HasSubstr("cannot be read")));
  EXPECT_TRUE(std::filesystem::exists(damaged + "/checkpoint.h5"));
  EXPECT_FALSE(std::filesystem::exists(prefix_.path(sample_entry(2).directory)));
}

/// An empty variable of a script names no run, and not the configured prefix.
TEST_F(KedgeDrop, EmptyWordsAreRefused) {
  add_three();
  for (const std::string& words : {std::string("--run heat --prefix ''"), "--run '' --prefix " + prefix_.directory()}) {
    const Result refused = kedge("drop --yes " + words);
    EXPECT_EQ(refused.status, 2);
    EXPECT_THAT(refused.text, HasSubstr("is empty")) << words;
  }
  EXPECT_TRUE(std::filesystem::exists(prefix_.path(sample_entry(1).directory)));
}

TEST_F(KedgeDrop, ARestOfAStoreWhoseRemovalWasKilledCanBeRemoved) {
  const std::string store = add_store("heat", 1);
  for (const char* name : {"rank-0.0.h5", "parity-0.0.kedge", "run"}) std::filesystem::remove(store + "/" + name);
  const Result dropped = kedge("drop --yes " + store);
  EXPECT_EQ(dropped.status, 0) << dropped.text;
  EXPECT_FALSE(std::filesystem::exists(store));
}

TEST_F(KedgeDrop, WordsThatDoNotGoTogetherAreRefused) {
  EXPECT_THAT(kedge("drop --prefix " + prefix_.directory()).text, HasSubstr("--prefix needs --run"));
  EXPECT_THAT(kedge("drop --run heat " + add_store("heat", 1)).text, HasSubstr("either stores, or a run"));
  EXPECT_THAT(kedge("drop --run ../heat --prefix " + prefix_.directory()).text, HasSubstr("not the name of a run"));
  EXPECT_THAT(kedge("drop --run heat --prefix /missing/prefix").text, HasSubstr("no such prefix"));
}

}  // namespace
}  // namespace kedge::testing::kedge_drop_test
