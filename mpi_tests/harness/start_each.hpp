// Starts of engines whose ranks have options and surroundings of their own, and what they settled.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include "base/text.hpp"
#include "harness/simulated_job.hpp"
#include "start/start.hpp"

namespace kedge::faults {

using Setting = std::function<void(int rank, Options&, start::Environment&)>;

struct EachRankStart {
  std::vector<testing::RankOutcome> outcomes;
  std::vector<comm::Topology> topologies;  ///< what the engine of each rank knows
  std::vector<unsigned> copy_threads;      ///< likewise
};

inline EachRankStart start_each(int ranks, const Setting& set) {
  FaultyDisk disk(SimulatedJob::memory_disk());
  for (const char* directory : {"/nodes", "/prefix"}) disk.make_directories(directory, 0755);
  testing::InProcessWorld world(ranks);
  EachRankStart starts;
  starts.topologies.resize(static_cast<std::size_t>(ranks));
  starts.copy_threads.resize(static_cast<std::size_t>(ranks));
  starts.outcomes = world.run([&](int rank) {
    Options options;
    options.run = "test";
    options.store.path = compose("/nodes/{}", rank);
    options.persistent.path = "/prefix";
    options.log.level = LogLevel::off;
    start::Environment environment;
    environment.file_system = disk.view(rank);
    environment.clock = std::make_shared<FakeClock>();
    set(rank, options, environment);
    const comm::Group group(world.communicator(rank), std::chrono::hours(1));
    const start::StartResult started = start::start(group, options, environment, Log(options.log));
    starts.topologies[static_cast<std::size_t>(rank)] = started.topology;
    starts.copy_threads[static_cast<std::size_t>(rank)] = started.copy_threads;
  });
  return starts;
}

}  // namespace kedge::faults
