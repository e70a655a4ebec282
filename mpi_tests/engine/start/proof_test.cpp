// The prefix is one filesystem and failure domains do not share a store, or the ranks that differ are named; the
// records of the proof are removed, also after a crash; a start needs no space for them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <utility>

#include "base/text.hpp"
#include "harness/forwarding_file_system.hpp"
#include "harness/several_starts.hpp"
#include "harness/start_each.hpp"
#include "harness/watched_communicator.hpp"
#include "start/sharing_check.hpp"

namespace kedge::faults::proof_test {
namespace {

const std::string kRecords = "/prefix/.kedge/test";

std::vector<testing::RankOutcome> start_only(SimulatedJob& job) {
  return job.start([](RankScope& scope) { (void)scope.make_engine(); });
}

std::vector<std::string> nonces(const FaultyDisk& disk) {
  std::vector<std::string> found;
  for (const auto& [path, entry] : disk.snapshot()) {
    if (path.find("/nonce-") != std::string::npos) found.push_back(path);
  }
  return found;
}

/// All ranks refuse the start with one text that has these parts, and leave nothing behind.
Failure expect_refused(SimulatedJob& job, const std::vector<std::string>& parts) {
  Failure failure = expect_all_failed(start_only(job), ErrorCode::invalid_argument);
  EXPECT_TRUE(says(failure.message, parts)) << failure.message;
  EXPECT_TRUE(nonces(job.disk).empty());
  return failure;
}

void expect_works(SimulatedJob& job) {
  expect_all_returned(start_only(job));
  EXPECT_TRUE(nonces(job.disk).empty());
}

void write_text(FaultyDisk& disk, const std::string& path, std::string_view text) {
  disk.write_all(path, std::as_bytes(std::span(text)));
}

/// The environment variable RACK by rank; an empty one is not set.
void set_racks(SimulatedJob& job, const std::vector<std::string>& racks) {
  job.options.topology.failure_domain = "env:RACK";
  job.surroundings = [racks](int rank, start::Environment& environment) {
    environment.find_variable = [rack = racks[static_cast<std::size_t>(rank)]](const std::string& name) {
      return name == "RACK" && !rack.empty() ? std::optional(rack) : std::nullopt;
    };
  };
}

TEST(Proof, ARankWithAnotherPrefixIsNamed) {
  for (const int stranger : {1, 3}) {
    SimulatedJob job(4);
    job.disk.make_directories("/elsewhere", 0755);
    job.disk.mount(stranger, "/prefix", "/elsewhere");
    const auto failure = expect_refused(
        job, {compose("not the same filesystem on rank {}", stranger), "does not see the record", "persistent.path"});
    EXPECT_EQ(failure.rank, stranger);
    EXPECT_EQ(failure.path, kRecords + "/nonce-1");
  }
}

TEST(Proof, AnotherRecordOnThePrefixIsNotTakenForTheSame) {
  for (const std::string& text : {std::string(32, '7') + "\n", std::string(7, 'a'), std::string(33, 'x')}) {
    SimulatedJob job(3);
    job.disk.make_directories("/elsewhere/.kedge/test", 0755);
    job.disk.mount(2, "/prefix", "/elsewhere");
    const std::string record = "/elsewhere/.kedge/test/nonce-1";
    write_text(job.disk, record, text);
    const auto failure = expect_all_failed(start_only(job), ErrorCode::invalid_argument);
    EXPECT_TRUE(says(failure.message, {"on rank 2", "another record", "persistent.path"})) << failure.message;
    EXPECT_EQ(nonces(job.disk), std::vector<std::string>{record});  // not this start's to remove
  }
}

TEST(Proof, APrefixThatCannotBeReadIsAnErrorOfStorage) {
  SimulatedJob job(3);
  job.disk.make_directories("/elsewhere/.kedge/test", 0755);
  job.disk.mount(1, "/prefix", "/elsewhere");
  job.disk.plant_link("/elsewhere/.kedge/test/nonce-1", "/prefix/.kedge/test/nonce-1");
  EXPECT_EQ(expect_all_failed(start_only(job), ErrorCode::io).rank, 1);
}

TEST(Proof, AStartThatWasRefusedHoldsNothingUp) {
  SimulatedJob job(4);
  job.options.store.path = "/nodes/all";
  expect_refused(job, {"share a node-local store"});
  job.options.store.path = "/nodes/{node}";
  commit_steps(job, {{"a", 1}});
  EXPECT_EQ(superblock_of(job.disk, 3, "a").commit.incarnation, 1U);  // the number was given back
}

TEST(Proof, TwoFailureDomainsMayNotShareAStore) {
  SimulatedJob job(6);
  job.options.store.path = "/nodes/all";
  const auto failure = expect_refused(job, {"ranks 0 and 2", "different failure domains", "{node} into store.path"});
  EXPECT_TRUE(failure.path.starts_with("/nodes/all/kedge-1000-test-")) << failure.path;
}

TEST(Proof, OnlyTheTwoThatShareAreNamed) {
  SimulatedJob job(6);
  for (const int rank : {4, 5}) job.disk.mount(rank, "/nodes/node2", "/nodes/node1");
  EXPECT_EQ(expect_refused(job, {"ranks 2 and 4"}).rank, 2);
}

TEST(Proof, RanksOfOneFailureDomainMayShareAStore) {
  SimulatedJob job(4);
  job.options.store.path = "/nodes/all";
  job.ranks_per_node = 4;
  expect_works(job);
  job.ranks_per_node = 2;
  set_racks(job, {"r", "r", "r", "r"});
  expect_works(job);
}

TEST(Proof, FailureDomainsOfAVariableAreGroupsOfNodes) {
  SimulatedJob job(8);
  job.options.store.path = "/nodes/all";
  set_racks(job, {"a", "a", "a", "a", "b", "b", "b", "b"});
  expect_refused(job, {"ranks 0 and 4"});
  for (int rank = 4; rank < 8; ++rank) job.disk.mount(rank, "/nodes/all", "/nodes/b");
  expect_works(job);
}

TEST(Proof, AVariableThatIsNotSetIsNamedWithItsRank) {
  SimulatedJob job(4);
  set_racks(job, {"a", "a", "", ""});
  const auto failure = expect_refused(job, {"topology.failure_domain", "RACK is not set on rank 2"});
  EXPECT_EQ(failure.rank, 2);
  job.surroundings = nullptr;
  expect_refused(job, {"RACK is not set on rank 0"});
}

TEST(Proof, ANodeMayNotBeInTwoFailureDomains) {
  SimulatedJob job(4);
  set_racks(job, {"a", "a", "b", "c"});
  expect_refused(job, {"ranks 2 and 3 are on one node and in two failure domains", "env:RACK"});
}

TEST(Proof, NodesMayBeOfDifferentSizes) {
  SimulatedJob job(5);
  const std::vector<std::string> nodes{"a", "b", "b", "b", "c"};
  job.surroundings = [&](int rank, start::Environment& environment) {
    environment.node = nodes[static_cast<std::size_t>(rank)];
  };
  expect_works(job);
  job.options.store.path = "/nodes/all";
  expect_refused(job, {"ranks 0 and 1"});
}

TEST(Proof, WithoutAConfiguredPathEachSimulatedNodeGetsADirectoryOfItsOwn) {
  SimulatedJob job(4);
  job.options.store.path = "";
  job.surroundings = [](int rank, start::Environment& environment) {
    environment.store_candidates = {"/nodes"};
    if (rank == 3) environment.node = "rack/7";
    if (rank == 2) environment.node = "x";
  };
  commit_steps(job, {{"a", 1}});
  EXPECT_TRUE(says(container_of(job.disk, 1, "a"), {"/nodes/kedge-1000-test-", "@node0/"}));
  EXPECT_TRUE(says(container_of(job.disk, 2, "a"), {"/nodes/kedge-1000-test-", "@x/"}));
  EXPECT_TRUE(says(container_of(job.disk, 3, "a"), {"/nodes/kedge-1000-test-", "@rack-7/"}));
}

TEST(Proof, NoncesThatACrashLeftAreSweptAndDisturbNobody) {
  SimulatedJob job(4);
  commit_steps(job, {{"a", 1}});
  const std::string directory = run_directory_of(job.disk, "node1");
  write_text(job.disk, kRecords + "/nonce-1", "rubbish");
  write_text(job.disk, kRecords + "/nonce-2", "of a start that came to nothing");
  write_text(job.disk, directory + "/nonce-1-0", std::string(32, '1'));
  write_text(job.disk, directory + "/nonce-2-0", std::string(32, '1'));
  write_text(job.disk, directory + "/nonce-2-2", "short");
  expect_works(job);
  write_text(job.disk, directory + "/nonce-9-0", std::string(32, '1'));
  write_text(job.disk, directory + "/nonce-of-something-else", "");
  expect_all_returned(start_only(job));
  EXPECT_EQ(nonces(job.disk),
            (std::vector<std::string>{directory + "/nonce-9-0", directory + "/nonce-of-something-else"}));
}

// What it continues from lies there, and the next checkpoint takes the place of an older one.
TEST(Proof, AStartNeedsNoSpaceInTheStores) {
  SimulatedJob job(2);
  Volume volume;
  volume.memory_backed = true;
  volume.capacity_bytes = std::uint64_t{1} << 20U;
  job.disk.make_directories("/nodes", 0755);
  job.disk.set_volume("/nodes", volume);
  commit_steps(job, {{"a", 1}, {"b", 2}});
  const std::uint64_t used = job.disk.used_bytes("/nodes");
  job.disk.write_all("/nodes/of-another", std::vector<std::byte>(volume.capacity_bytes - used));
  const Opened opened = reopen(job, latest, Newer::keep, {{"c", 3}});
  EXPECT_FALSE(opened.failure) << to_string(*opened.failure);
  EXPECT_EQ(opened.step, 2);
}

TEST(Proof, AStartThatDiesAnywhereLeavesNoNonceForTheOneAfterTheNext) {
  for (int victim = 0; victim < 3; ++victim) {
    bool died = true;
    for (std::uint64_t n = 1; died; ++n) {
      SimulatedJob job(3);
      job.disk.stop_world_after(victim, n, n);
      died = start_only(job)[static_cast<std::size_t>(victim)].died;
      expect_works(job);
      ASSERT_FALSE(testing::Test::HasFailure()) << "rank " << victim << ", operation " << n;
      ASSERT_LT(n, 200U);
    }
  }
}

TEST(Proof, AnErrorInAnyOperationIsTheSameOnAllRanks) {
  for (int victim = 0; victim < 3; ++victim) {
    for (const bool read : {false, true}) {
      for (std::uint64_t n = 1; n < 60; ++n) {
        SimulatedJob job(3);
        if (read) job.disk.fail_read(victim, n, EIO);
        else job.disk.fail(victim, n, EIO);
        const auto outcomes = start_only(job);
        for (const auto& outcome : outcomes) {
          EXPECT_EQ(outcome.returned(), outcomes[0].returned());
          EXPECT_EQ(outcome.failure.value_or(Failure{}).message, outcomes[0].failure.value_or(Failure{}).message);
        }
        job.disk.heal(victim);
        expect_works(job);
        ASSERT_FALSE(testing::Test::HasFailure()) << "rank " << victim << ", operation " << n << (read ? " read" : "");
      }
    }
  }
}

/// The operations of a rank in which its death may leave its store's nonce: the first makes it, the last removes it.
std::vector<std::uint64_t> operations_with_nonce(int rank) {
  std::vector<std::uint64_t> found;
  for (std::uint64_t n = 1; n < 60; ++n) {
    for (std::uint64_t seed = 0; seed < 8; ++seed) {
      SimulatedJob job(3);
      job.disk.stop_world_after(rank, n, seed);
      (void)start_only(job);
      const auto left = nonces(job.disk);
      const auto is_its = [&](const std::string& path) {
        return path.find(compose("/nonce-1-{}-", rank)) != std::string::npos;
      };
      if (std::ranges::any_of(left, is_its) && (found.empty() || found.back() != n)) found.push_back(n);
    }
  }
  return found;
}

TEST(Proof, AStoreWhoseNonceCannotBeMadeOrRemovedIsRefused) {
  const int victim = 2;  // the lowest of its node
  const auto operations = operations_with_nonce(victim);
  ASSERT_GE(operations.size(), 2U);
  for (const std::uint64_t n : operations) {
    SimulatedJob job(3);
    job.disk.fail(victim, n, EIO);
    EXPECT_EQ(expect_all_failed(start_only(job), ErrorCode::io).rank, victim) << "operation " << n;
  }
}

TEST(Proof, ARecordThatALaterStartSweptAwayIsNoFaultOfThePrefix) {
  FaultyDisk disk(SimulatedJob::memory_disk());
  disk.make_directories("/prefix", 0755);
  testing::InProcessWorld world(1);
  const auto outcomes = world.run([&](int rank) {
    const auto file_system = disk.view(rank);
    persist::RunStart start({file_system, "/prefix", "test"});
    const commits::RunIdentity run{"test", {}, start.take_incarnation()};
    bool is_overtaken = false;
    testing::WatchedCommunicator communicator(world.communicator(rank), [&](Deadline) {
      if (std::exchange(is_overtaken, true)) return;  // once, when the record is written and nobody has read it
      persist::RunStart later({file_system, "/prefix", "test"});
      (void)later.take_incarnation();
      later.mark_begun({});
      later.remove_nonces();
    });
    communicator.connect(Deadline::never());
    (void)start::require_shared_prefix(comm::Group(communicator, std::chrono::hours(1)),
                                       {*file_system, "/prefix", run, ""}, comm::Topology{{0}, {0}, 0, {}}, &start);
  });
  const auto failure = expect_all_failed(outcomes, ErrorCode::busy);
  EXPECT_TRUE(says(failure.message, {"has taken over"})) << failure.message;
}

/// Which ranks read the record, with these mounts on the last rank.
std::set<int> readers(const std::string& mounts_of_last) {
  std::mutex mutex;
  std::set<int> readers;
  class Reads final : public ForwardingFileSystem {
   public:
    Reads(std::shared_ptr<fs::FileSystem> inner, std::function<void()> note)
        : ForwardingFileSystem(std::move(inner)), note_(std::move(note)) {}
    [[nodiscard]] std::unique_ptr<fs::File> open(const std::string& path, fs::Access access) override {
      if (path == kRecords + "/nonce-1" && access == fs::Access::read) note_();
      return inner().open(path, access);
    }

   private:
    std::function<void()> note_;
  };
  SimulatedJob job(6);  // two on each node
  job.surroundings = [&](int rank, start::Environment& environment) {
    environment.mounts = rank == 5 ? mounts_of_last : "mnt:[1]";
    environment.file_system = std::make_shared<Reads>(environment.file_system, [&, rank] {
      const std::lock_guard guard(mutex);
      readers.insert(rank);
    });
  };
  expect_all_returned(start_only(job));
  return readers;
}

TEST(Proof, OneRankOfEachNodeReadsTheRecordAndWhoeverMaySeeOtherMounts) {
  EXPECT_EQ(readers("mnt:[1]"), (std::set<int>{0, 2, 4}));
  EXPECT_EQ(readers("mnt:[2]"), (std::set<int>{0, 2, 4, 5}));
  EXPECT_EQ(readers(""), (std::set<int>{0, 2, 4, 5}));
}

TEST(Proof, AStoreOfOneRankAloneIsLookedAtToo) {
  const auto started = start_each(4, [](int rank, Options& options, start::Environment& environment) {
    environment.ranks_per_node = 2;
    options.store.path = rank == 0 ? "/nodes/a" : "/nodes/b";
  });
  const auto failure = expect_all_failed(started.outcomes, ErrorCode::invalid_argument);
  EXPECT_TRUE(says(failure.message, {"ranks 1 and 2", "{node}"})) << failure.message;
}

}  // namespace
}  // namespace kedge::faults::proof_test
