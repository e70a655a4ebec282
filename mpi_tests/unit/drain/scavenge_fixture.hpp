// Two nodes whose job left a checkpoint in their stores, and outputs if asked.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>  // NOLINT(modernize-deprecated-headers): mkdtemp

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "comm/group.hpp"
#include "drain/drain.hpp"
#include "drain/scavenge.hpp"
#include "fs/tree.hpp"
#include "harness/simulated_job.hpp"
#include "harness/simulated_nodes.hpp"
#include "kedge/engine.hpp"
#include "kedge/testing/in_process_job.hpp"
#include "kedge/transport.hpp"

namespace kedge::drain {

/// Two nodes with a rank each, whose job committed "a" and flushed nothing.
class Scavenge : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = ::testing::TempDir() + "kedge-scavenge-XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    directory = name;
    options.store.path = directory + "/{node}";
    options.persistent.path = directory + "/prefix";
    options.persistent.every = 0;
    options.log.level = LogLevel::off;
    testing::InProcessJob job(2, options);
    for (const auto& outcome : job.start([](Engine&engine, Communicator& /*communicator*/) {
           const std::vector<double> state(100, 7.0);
           engine.create("a");
           engine.save("state", {state.data(), DataType::float64, Shape{state.size()}});
           engine.commit();
         })) {
      ASSERT_TRUE(outcome.returned());
    }
  }
  void TearDown() override { (void)fs::remove_tree(*world.file_system, directory); }

  [[nodiscard]] std::string store(int node) const {
    const std::string root = directory + "/node" + std::to_string(node);
    return fs::join(root, world.file_system->list(root).at(0));
  }

  /// The job, once more; each rank ends as `work` says.
  void start_again(const std::function<void(Engine&)>& work) const {
    testing::InProcessJob job(2, options);
    for (const auto& outcome : job.start([&](Engine&engine, Communicator& /*communicator*/) { work(engine); })) {
      ASSERT_TRUE(outcome.returned());
    }
  }
  /// An output of a job that died while it was flushed: as late as possible, so that it was committed.
  void leave_output() const {
    const std::size_t before = flushed_plots();
    for (std::uint64_t before_end = 1; before_end < 100; ++before_end) {
      std::uint64_t end = 0;
      for (const bool dies : {false, true}) {
        testing::InProcessJob job(2, options);
        if (dies) job.stop_at(1, end - before_end);
        (void)job.start([](Engine& engine, Communicator& /*communicator*/) {
          ASSERT_EQ(engine.open(), "a");
          engine.close();
          engine.create_output("plot");
          const std::vector<double> plot(50, 1.0);
          engine.save("plot", {plot.data(), DataType::float64, Shape{plot.size()}});
          engine.commit();
        });
        if (!dies) end = job.events().at(1);
      }
      if (flushed_plots() < before + 2 * before_end) return;
    }
    FAIL() << "each output was flushed";
  }
  [[nodiscard]] std::size_t flushed_plots() const {
    std::size_t found = 0;
    for (const std::string& name : world.file_system->list(options.persistent.path)) {
      const std::string plot = fs::join(options.persistent.path, name);
      if (name.starts_with("plot.") && world.file_system->status(plot + "/checkpoint.h5")) ++found;
    }
    return found;
  }
  /// Locks stay, as of a process that was killed.
  void start_again_and_die() const {
    start_again([](Engine& engine) { ASSERT_EQ(engine.open(), "a"); });
  }
  /// As if it had worked on other nodes.
  void remove_locks_of_second_start() const {
    for (const int node : {0, 1}) {
      const std::string lock = store(node) + "/lock.2." + std::to_string(node);
      ASSERT_TRUE(world.file_system->status(lock)) << lock;
      world.file_system->remove(lock);
    }
  }

  const faults::SimulatedNodes nodes{1};
  std::string directory;
  Options options;
  start::Environment world = start::Environment::system();
};

/// One process sees both nodes: a drain without messages between processes.
class DrainAlone : public Scavenge {
 protected:
  [[nodiscard]] std::string drained() const {
    const comm::Group alone(single_process(), std::chrono::seconds(60));
    alone.communicator().connect(alone.deadline());
    return drain(alone, nullptr, options, world, false);
  }
};

}  // namespace kedge::drain
