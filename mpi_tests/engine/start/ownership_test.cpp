// What others may have planted on shared paths, on the way to the store too: refused in clear words on all ranks, never
// followed or overwritten.
#include <gtest/gtest.h>

#include "base/text.hpp"
#include "harness/several_starts.hpp"

namespace kedge::faults::ownership_test {
namespace {

using Kind = fs::FileStatus::Kind;
constexpr std::uint32_t kStranger = 4242;
const std::string kRecords = "/prefix/.kedge/test";
const std::string kTrap = "/home/precious";

/// A job of two ranks, with something elsewhere that a planted link points to.
class Ownership : public testing::Test {
 protected:
  void SetUp() override {
    job.disk.make_directories("/home", 0755);
    job.disk.make_directories("/home/directory", 0700);
    job.disk.write_all(kTrap, std::vector(10'000, std::byte{7}));
  }
  void change(const std::string& path, std::uint32_t owner, std::uint32_t mode) {
    auto status = job.disk.snapshot().at(path).status;
    status.owner = owner;
    status.mode = mode;
    job.disk.plant(path, status);
  }
  void replace_by_link(const std::string& path, const std::string& target) {
    job.disk.remove_all(path);
    job.disk.plant_link(path, target);
  }
  /// A start is refused with io, the same on all ranks, with this path and these words.
  void expect_refused(const std::string& path, const std::vector<std::string>& words) {
    const auto failure = expect_all_failed(
        job.start([](RankScope& scope) { const Engine engine = scope.make_engine(); }), ErrorCode::io);
    EXPECT_EQ(failure.path, path);
    EXPECT_TRUE(says(failure.message, words)) << failure.message;
    EXPECT_GE(failure.rank, 0);
    expect_untouched();
  }
  void expect_untouched() const {
    EXPECT_EQ(job.disk.read_all(kTrap), std::vector(10'000, std::byte{7}));
    for (const auto& [path, entry] : job.disk.snapshot()) EXPECT_FALSE(path.starts_with("/home/directory/")) << path;
  }
  [[nodiscard]] std::string store() const { return run_directory_of(job.disk, "node0"); }
  SimulatedJob job{2};
};

TEST_F(Ownership, AStoreOfAnotherUserIsRefused) {
  commit_steps(job, {{"a", 1}});
  change(store(), kStranger, 0700);
  expect_refused(store(), {"user 4242", "user 1000", "store.path"});
  change(store(), 1000, 0700);
  EXPECT_EQ(reopen(job).step, 1);
}

TEST_F(Ownership, AStoreThatIsOpenToOthersIsRefused) {
  commit_steps(job, {{"a", 1}});
  for (const std::uint32_t mode : {0770U, 0707U, 0750U, 0701U, 0777U, 01777U}) {
    change(store(), 1000, mode);
    expect_refused(store(), {"open to other users", compose("{:04o}", mode), "chmod 700"});
  }
  change(store(), 1000, 0700);
  EXPECT_EQ(reopen(job).step, 1);
}

TEST_F(Ownership, AStoreOpenToOthersOnOneNodeIsRefusedOnAllRanks) {
  job.ranks = 4;
  commit_steps(job, {{"a", 1}});
  const std::string other = run_directory_of(job.disk, "node1");
  change(other, 1000, 0755);
  expect_refused(other, {"open to other users"});
}

TEST_F(Ownership, ALinkInPlaceOfTheStoreIsRefused) {
  commit_steps(job, {{"a", 1}});
  const std::string path = store();
  replace_by_link(path, "/home/directory");
  expect_refused(path, {"link"});
  replace_by_link(path, "/home/nowhere");
  expect_refused(path, {"link"});
}

TEST_F(Ownership, AFileInPlaceOfTheStoreIsRefused) {
  commit_steps(job, {{"a", 1}});
  const std::string path = store();
  job.disk.remove_all(path);
  job.disk.write_all(path, std::vector(100, std::byte{1}));
  const auto failure =
      expect_all_failed(job.start([](RankScope& scope) { const Engine engine = scope.make_engine(); }), ErrorCode::io);
  EXPECT_EQ(failure.path, path);
  EXPECT_EQ(job.disk.read_all(path).size(), 100U);
}

TEST_F(Ownership, TheWayToTheStoreIsJudgedToo) {
  job.options.store.path = "/scratch/{node}/store";
  job.disk.make_directories("/scratch", 01777);
  commit_steps(job, {{"a", 1}});
  // Somebody else's link in a directory that all may write.
  job.disk.view(0)->rename("/scratch/node0", "/scratch/mine");
  job.disk.plant_link("/scratch/node0", "/home/directory");
  change("/scratch/node0", kStranger, 0777);
  expect_refused("/scratch/node0", {"symbolic link owned by user 4242", "store.path"});
  // The user's own is his own arrangement, and so is the administrator's.
  replace_by_link("/scratch/node0", "/scratch/mine");
  EXPECT_FALSE(reopen(job, latest, Newer::keep, {{"b", 2}}).failure);
  change("/scratch/node0", 0, 0777);
  EXPECT_EQ(reopen(job).step, 2);
  // Where it leads to, others must not be able to replace it.
  job.disk.make_directories("/open", 0777);
  job.disk.make_directories("/open/mine", 0700);
  replace_by_link("/scratch/node0", "/open/mine");
  expect_refused("/open", {"every user can replace"});
  job.disk.remove_all("/scratch");
  job.disk.make_directories("/scratch", 0777);
  expect_refused("/scratch", {"every user can replace", "0777", "chmod +t"});
}

TEST_F(Ownership, ALinkInPlaceOfALockIsRefused) {
  commit_steps(job, {{"a", 1}});
  job.disk.plant_link(store() + "/lock.2.1", kTrap);
  expect_refused(store() + "/lock.2.1", {"link"});
  // An older one is looked at when the start asks who holds it.
  job.disk.remove_all(store() + "/lock.2.1");
  job.disk.plant_link(store() + "/lock.1.7", kTrap);
  const Opened opened = reopen(job);
  EXPECT_TRUE(opened.step == 1 || (opened.failure && opened.failure->code == ErrorCode::io));
  expect_untouched();
}

TEST_F(Ownership, ALinkInPlaceOfARecordIsNotFollowedAndTheRecordIsMadeAgain) {
  commit_steps(job, {{"a", 1}});
  for (const std::string& path : {store() + "/run", kRecords + "/run.json"}) {
    replace_by_link(path, kTrap);
    EXPECT_EQ(reopen(job).step, 1) << path;
    expect_untouched();
    EXPECT_EQ(job.disk.snapshot().at(path).status.kind, fs::FileStatus::Kind::file) << path;
  }
}

TEST_F(Ownership, ALinkInPlaceOfAnIncarnationIsNotFollowed) {
  commit_steps(job, {{"a", 1}});
  job.disk.plant_link(kRecords + "/begun-2", kTrap);
  EXPECT_EQ(reopen(job).info.incarnation, 1U) << "the commit's";
  EXPECT_TRUE(job.logged("incarnation 3,")) << "the next number is taken instead";
  expect_untouched();
}

TEST_F(Ownership, ALinkInPlaceOfAContainerIsNeitherReadNorWritten) {
  for (const std::string& target : {kTrap, std::string("/home/nowhere"), std::string("copy")}) {
    SCOPED_TRACE(target);
    SimulatedJob fresh(2);
    fresh.disk.make_directories("/home", 0755);
    fresh.disk.write_all(kTrap, std::vector(10'000, std::byte{7}));
    commit_steps(fresh, {{"a", 1}});
    const std::string path = container_of(fresh.disk, 1, "a");
    // A link to the true bytes is still a link.
    const auto bytes = fresh.disk.read_all(path);
    fresh.disk.remove_all(path);
    const std::string beside = run_directory_of(fresh.disk, "node0") + "/copy";
    fresh.disk.write_all(beside, bytes);
    fresh.disk.plant_link(path, target == "copy" ? beside : target);
    const Opened opened = reopen(fresh);
    ASSERT_TRUE(opened.failure);
    EXPECT_EQ(opened.failure->code, ErrorCode::unrecoverable);
    EXPECT_TRUE(says(opened.failure->message, {"the container of rank 1", path, "not a regular file of this user"}))
        << opened.failure->message;
    commit_steps(fresh, {{"b", 2}});  // beside it: one taken name does not stop a job
    EXPECT_EQ(reopen(fresh).step, 2);
    EXPECT_EQ(fresh.disk.snapshot().at(path).status.kind, fs::FileStatus::Kind::link);
    EXPECT_EQ(fresh.disk.read_all(kTrap), std::vector(10'000, std::byte{7}));
    EXPECT_EQ(fresh.disk.read_all(beside), bytes);
    EXPECT_FALSE(fresh.disk.snapshot().contains("/home/nowhere"));
    fresh.disk.remove_all(path);
    commit_steps(fresh, {{"c", 3}});
    EXPECT_EQ(reopen(fresh).step, 3);
  }
}

TEST_F(Ownership, AContainerOfAnotherUserIsNeitherTakenNorOverwritten) {
  commit_steps(job, {{"a", 1}});
  const std::string path = container_of(job.disk, 0, "a");
  const auto bytes = job.disk.read_all(path);
  change(path, kStranger, 0666);
  const Opened opened = reopen(job);
  ASSERT_TRUE(opened.failure);
  EXPECT_EQ(opened.failure->code, ErrorCode::unrecoverable);
  EXPECT_TRUE(says(opened.failure->message, {"the container of rank 0", path, "not a regular file of this user"}))
      << opened.failure->message;
  commit_steps(job, {{"b", 2}});
  EXPECT_EQ(job.disk.read_all(path), bytes);
}

TEST_F(Ownership, APlantedContainerBesideAGoodOneDoesNotHinderOpening) {
  job.options.store.keep = 2;
  commit_steps(job, {{"a", 1}});
  job.disk.plant_link(store() + "/rank-0.9.h5", kTrap);
  EXPECT_EQ(reopen(job).step, 1);
  expect_untouched();
}

TEST_F(Ownership, APrefixThatAnybodyMayWriteIsRefusedUnlessSticky) {
  change("/prefix", 1000, 0777);
  expect_refused("/prefix", {"every user can replace files", "chmod o-w"});
  change("/prefix", 1000, 01777);
  EXPECT_FALSE(reopen(job).failure);
  change("/prefix/.kedge", 1000, 0777);
  expect_refused("/prefix/.kedge", {"every user can replace files", "chmod o-w"});
}

TEST_F(Ownership, RecordsOfAnotherUserAreRefused) {
  commit_steps(job, {{"a", 1}});
  change(kRecords, kStranger, 0755);
  expect_refused(kRecords, {"belongs to user 4242", "another run name"});
}

TEST_F(Ownership, RecordsThatOthersMayWriteAreRefused) {
  commit_steps(job, {{"a", 1}});
  for (const std::uint32_t mode : {0775U, 0757U, 0777U, 01777U}) {
    change(kRecords, 1000, mode);
    expect_refused(kRecords, {"others can write the run's records", compose("{:04o}", mode), "chmod go-w"});
  }
}

TEST_F(Ownership, ALinkInPlaceOfTheRecordsDirectoryIsRefused) {
  job.disk.plant_link("/prefix/.kedge", "/home/directory");
  expect_refused("/prefix/.kedge", {"link"});
  job.disk.remove_all("/prefix/.kedge");
  job.disk.make_directories("/prefix/.kedge", 0755);
  job.disk.plant_link(kRecords, "/home/directory");
  expect_refused(kRecords, {"link"});
}

}  // namespace
}  // namespace kedge::faults::ownership_test
