// What kedge::testing promises its users beyond the communicator itself, on the real filesystem.
#include <cstdlib>
#include <filesystem>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "harness/simulated_nodes.hpp"
#include "harness/testing_world.hpp"
#include "kedge/kedge.hpp"

namespace kedge::testing::in_process_job_test {
namespace {

constexpr int kRanks = 4;

Deadline soon() { return Deadline::after(std::chrono::hours(1)); }  // virtual: never waited for

class Job : public Test {
 protected:
  Job() {
    std::string name = (std::filesystem::temp_directory_path() / "kedge-testing-XXXXXX").string();
    place = ::mkdtemp(name.data());
    options.persistent.path = place / "prefix";
    options.persistent.every = 0;
    options.store.path = place / "{node}";
    options.log.level = LogLevel::off;
  }
  ~Job() override { std::filesystem::remove_all(place); }

  const faults::SimulatedNodes nodes{1};
  std::filesystem::path place;
  Options options;
};

void restore_and_commit(Engine& engine, int expected_step) {
  int step = 0;
  State state;
  state.add("step", step);
  engine.restore(state);
  EXPECT_EQ(step, expected_step);
  ++step;
  engine.checkpoint("step-" + std::to_string(step), state);
}

void expect_all_returned(const std::vector<RankOutcome>& outcomes) {
  for (const auto& outcome : outcomes) {
    EXPECT_TRUE(outcome.returned()) << (outcome.failure ? to_string(*outcome.failure) : "died");
  }
}

TEST_F(Job, FindsItsCheckpointAfterADeath) {
  InProcessJob job(kRanks, options);
  EXPECT_EQ(job.events(), std::vector<std::uint64_t>(kRanks, 0));
  expect_all_returned(job.start([](Engine& engine, Communicator&) { restore_and_commit(engine, 0); }));
  const auto events = job.events();
  job.stop_at(2, events[2] - 1);
  job.stop_at(3, 0, StopKind::stop);  // hangs where it connects
  const auto outcomes = job.start([](Engine& engine, Communicator&) { restore_and_commit(engine, 1); });
  EXPECT_TRUE(outcomes[3].died);
  EXPECT_FALSE(outcomes[0].returned() || outcomes[1].returned() || outcomes[2].returned());
  EXPECT_EQ(job.events()[3], 0U);
  // Faults are for one start.
  expect_all_returned(job.start([](Engine& engine, Communicator&) { restore_and_commit(engine, 1); }));
}

TEST_F(Job, StoresAreTellableApartByOptionsOfEachRank) {
  InProcessJob job(kRanks, [this](int rank) {
    Options mine = options;
    mine.store.path = place / ("disk-of-" + std::to_string(rank));
    return mine;
  });
  expect_all_returned(job.start([](Engine& engine, Communicator&) { restore_and_commit(engine, 0); }));
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(place)) names.insert(entry.path().filename());
  EXPECT_EQ(names, (std::set<std::string>{"disk-of-0", "disk-of-1", "disk-of-2", "disk-of-3", "prefix"}));
  std::filesystem::remove_all(place / "disk-of-1");
  expect_all_returned(job.start([](Engine& engine, Communicator&) { restore_and_commit(engine, 1); }));
}

TEST_F(Job, ReportsWhatTheEngineRefuses) {
  options.store.path = place / "shared";  // by four failure domains
  InProcessJob job(kRanks, options);
  for (const auto& outcome : job.start([](Engine&, Communicator&) { ADD_FAILURE() << "it started"; })) {
    ASSERT_TRUE(outcome.failure.has_value());
    EXPECT_EQ(outcome.failure->code, ErrorCode::invalid_argument);
  }
}

TEST_F(Job, TheBodysMessagesAndTheEnginesDoNotMeet) {
  InProcessJob job(kRanks, options);
  expect_all_returned(job.start([](Engine& engine, Communicator& communicator) {
    const int next = (communicator.rank() + 1) % kRanks;
    const int before = (communicator.rank() + kRanks - 1) % kRanks;
    // On every channel a receive waits while the engine communicates.
    std::vector<int> received(1024, -1);
    std::vector<Communicator::Request> requests;
    for (int channel = 0; channel < 1024; ++channel) {
      auto bytes = std::as_writable_bytes(std::span(received)).subspan(sizeof(int) * static_cast<std::size_t>(channel));
      requests.push_back(communicator.receive(before, channel, bytes.first(sizeof(int))));
    }
    restore_and_commit(engine, 0);
    for (int channel = 0; channel < 1024; ++channel) {
      const int rank = communicator.rank();
      requests.push_back(communicator.send(next, channel, std::as_bytes(std::span(&rank, 1))));
    }
    communicator.wait(requests, soon());
    EXPECT_EQ(received, std::vector<int>(1024, before));
  }));
}

TEST_F(Job, RefusesRanksThatItDoesNotHave) {
  EXPECT_THROW(InProcessJob(0, options), Error);
  InProcessJob job(2, options);
  EXPECT_THROW(job.stop_at(2, 0), Error);
  EXPECT_THROW(job.stop_at(-1, 0), Error);
}

TEST(InProcess, CommunicatorsOfOneRankBelongTogetherInTheOrderTheyConnect) {
  InProcessWorld world(2);
  expect_all_returned(world.run([&](int rank) {
    const auto first = world.communicator(rank);
    const auto second = world.communicator(rank);
    first->connect(soon());
    second->connect(soon());
    std::vector<std::byte> bytes(1, std::byte{1});
    if (rank == 0) {
      static_cast<void>(first->send(1, 0, bytes));
      bytes[0] = std::byte{2};
      static_cast<void>(second->send(1, 0, bytes));
      return;
    }
    for (const auto& [communicator, expected] : {std::pair(second.get(), 2), std::pair(first.get(), 1)}) {
      auto request = communicator->receive(0, 0, bytes);
      communicator->wait(std::span(&request, 1), soon());
      EXPECT_EQ(bytes[0], std::byte(expected));
    }
  }));
}

}  // namespace
}  // namespace kedge::testing::in_process_job_test
