// A store is removed whole, containers first, and never while a job uses it or begins to; it says which job used it
// last.
#include "store/store_removal.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>

#include "base/clock.hpp"
#include "harness/faulty_fixture.hpp"
#include "harness/forwarding_file_system.hpp"
#include "store/job_record.hpp"
#include "store/store_lock.hpp"
#include "store/store_record_files.hpp"

namespace kedge::faults::store_removal_test {
namespace {

using testing::HasSubstr;

constexpr const char* kStore = "/d/kedge-1000-heat-1f2e3d4c";

/// Calls `before` before each file is removed.
class Interrupted final : public ForwardingFileSystem {
 public:
  Interrupted(std::shared_ptr<fs::FileSystem> inner, std::function<void()> before)
      : ForwardingFileSystem(std::move(inner)), before_(std::move(before)) {}
  void remove(const std::string& path) override {
    removed.push_back(path.substr(path.rfind('/') + 1));
    if (before_) before_();
    inner().remove(path);
  }
  std::vector<std::string> removed;

 private:
  std::function<void()> before_;
};

/// A filesystem on which no file can be made until one was removed.
class WithoutInodes final : public ForwardingFileSystem {
 public:
  using ForwardingFileSystem::ForwardingFileSystem;
  void remove(const std::string& path) override {
    inner().remove(path);
    removed.push_back(path.substr(path.rfind('/') + 1));
  }
  std::unique_ptr<fs::Lock> try_lock(const std::string& path, std::string_view holder) override {
    if (removed.empty()) throw Error(Failure{ErrorCode::no_space, "no inodes left", -1, path, ENOSPC});
    return inner().try_lock(path, holder);
  }
  std::vector<std::string> removed;
};

class StoreRemoval : public Faulty {
 protected:
  void SetUp() override {
    Faulty::SetUp();
    disk.make_directories(kStore, 0700);
    store::StoreRecordFiles records(system, {kStore, false}, LogicalRank{0});
    Id128 id;
    id.bytes.fill(7);
    records.write_owner({id, id, "/d/prefix"});
    records.write_commit_marker(id);
    for (const char* name : {"rank-0.0.h5", "parity-0.0.kedge", "lock.3.0", "taking.0.1"})
      write(path_of(name), bytes_of(1000, 1));
  }
  static std::string path_of(const std::string& name) { return std::string(kStore) + "/" + name; }
  /// A start of this incarnation that waits for nobody.
  std::optional<Failure> start(std::uint64_t incarnation) {
    return failure_of([&] { const store::StoreLock lock(disk.view(1), kStore, incarnation, 0, *clock, 0); });
  }
  std::shared_ptr<Clock> clock = system_clock();
};

TEST_F(StoreRemoval, TheRecordsGoLast) {
  Interrupted seen(system, {});
  EXPECT_EQ(store::remove_store(seen, kStore), 0U);
  EXPECT_FALSE(system->status(kStore));
  ASSERT_GE(seen.removed.size(), 5U);
  EXPECT_TRUE(seen.removed[0].ends_with(".h5") || seen.removed[0].ends_with(".kedge")) << seen.removed[0];
  EXPECT_TRUE(seen.removed[1].ends_with(".h5") || seen.removed[1].ends_with(".kedge")) << seen.removed[1];
  EXPECT_EQ(seen.removed[seen.removed.size() - 3], "run") << "before drop's own lock and the directory";
}

TEST_F(StoreRemoval, TheJobThatUsedItLastIsKnown) {
  EXPECT_EQ(store::read_store_content(*system, kStore).job, "");
  store::record_job(*system, kStore, "7");
  store::record_job(*system, kStore, "7");
  EXPECT_EQ(store::read_store_content(*system, kStore).job, "7");
  store::record_job(*system, kStore, "8");
  EXPECT_EQ(store::read_store_content(*system, kStore).job, "8");
  write(path_of("job-9"), {});  // two: nobody knows
  EXPECT_EQ(store::read_store_content(*system, kStore).job, "");
  store::record_job(*system, kStore, "");
  EXPECT_FALSE(system->status(path_of("job-8")) || system->status(path_of("job-9")));
  store::record_job(*system, kStore, "7");
  EXPECT_EQ(store::remove_store(*system, kStore), 0U);
}

TEST_F(StoreRemoval, NeedsNoFileForItsLock) {
  WithoutInodes full(system);
  EXPECT_EQ(store::remove_store(full, kStore), 0U);
  EXPECT_FALSE(system->status(kStore));
  EXPECT_THAT(full.removed.at(0), testing::AnyOf("lock.3.0", "taking.0.1")) << "what no start misses goes first";
}

TEST_F(StoreRemoval, WithoutLeftoversAContainerMakesRoomForTheLock) {
  for (const char* name : {"lock.3.0", "taking.0.1"}) system->remove(path_of(name));
  WithoutInodes full(system);
  EXPECT_EQ(store::remove_store(full, kStore), 0U);
  EXPECT_THAT(full.removed.at(0), testing::AnyOf("rank-0.0.h5", "parity-0.0.kedge")) << "the records go last";
}

TEST_F(StoreRemoval, AStoreInUseLosesNothingForTheSakeOfTheLock) {
  const store::StoreLock job(disk.view(1), kStore, 4, 0, *clock, 0);
  WithoutInodes full(system);
  const auto failure = failure_of([&] { (void)store::remove_store(full, kStore); });
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->code, ErrorCode::busy);
  EXPECT_TRUE(full.removed.empty());
}

TEST_F(StoreRemoval, AStoreInUseLosesNothing) {
  const store::StoreLock job(disk.view(1), kStore, 4, 0, *clock, 0);
  const auto failure = failure_of([&] { (void)store::remove_store(*system, kStore); });
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->code, ErrorCode::busy);
  EXPECT_THAT(failure->message, HasSubstr("in use by a job (incarnation 4, rank 0"));
  EXPECT_TRUE(system->status(path_of("rank-0.0.h5")));
  EXPECT_TRUE(system->status(path_of("run")));
}

/// What it would find half removed it must not take for its own.
TEST_F(StoreRemoval, AJobThatStartsMeanwhileIsRefused) {
  std::vector<std::optional<Failure>> met;
  Interrupted meanwhile(system, [&] { met.push_back(start(5)); });
  EXPECT_EQ(store::remove_store(meanwhile, kStore), 1U) << "the lock file of the refused start";
  ASSERT_GE(met.size(), 6U);
  for (const auto& each : met) {
    ASSERT_TRUE(each);
    EXPECT_EQ(each->code, ErrorCode::busy);
    EXPECT_THAT(each->message, testing::AllOf(HasSubstr("a newer start"), HasSubstr("kedge drop")));
  }
  EXPECT_FALSE(system->status(path_of("rank-0.0.h5")));
  EXPECT_EQ(start(6), std::nullopt) << "nothing of it stays in the way";
}

/// Whoever made it may still run.
TEST_F(StoreRemoval, AStoreWithALockThatCannotBeOpenedLosesNothing) {
  disk.refuse_open(path_of("lock.3.0"));
  const auto failure = failure_of([&] { (void)store::remove_store(*system, kStore); });
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->code, ErrorCode::io);
  EXPECT_EQ(failure->path, path_of("lock.3.0"));
  EXPECT_THAT(failure->message, HasSubstr("remove this file"));
  EXPECT_TRUE(system->status(path_of("rank-0.0.h5")));
  system->remove(path_of("lock.3.0"));
  EXPECT_EQ(store::remove_store(*system, kStore), 0U);
}

TEST_F(StoreRemoval, OneThatCannotBeCompletedCanBeTriedAgain) {
  Interrupted failing(system, [] { throw Error(Failure{ErrorCode::io, "device error", -1, "/d", 5}); });
  EXPECT_TRUE(failure_of([&] { (void)store::remove_store(failing, kStore); }));
  EXPECT_TRUE(system->status(path_of("run")));
  EXPECT_EQ(start(5), std::nullopt);
  EXPECT_EQ(store::remove_store(*system, kStore), 0U);
  EXPECT_FALSE(system->status(kStore));
}

}  // namespace
}  // namespace kedge::faults::store_removal_test
