#include "harness/simulated_job.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <utility>

namespace kedge::faults {
namespace {

/// Histories of the inline pipeline with a worker behind each rank: KEDGE_TEST_PIPELINE=waits, where commit waits for
/// it, =tcp, where it sends over TCP besides (not where ranks die: its threads are not the world's), or =background.
std::string_view pipeline_of_tests() {
  const char* const mode = std::getenv("KEDGE_TEST_PIPELINE");
  return mode == nullptr ? std::string_view() : mode;
}

}  // namespace

SimulatedJob::SimulatedJob(int ranks_, DiskOptions disk_options) : disk(std::move(disk_options)), ranks(ranks_) {
  disk.make_directories("/nodes", 0755);
  disk.make_directories("/prefix", 0755);
  options.run = "test";
  options.store.path = "/nodes/{node}";
  options.persistent.path = "/prefix";
  options.persistent.every = 0;  // what is not about the prefix does not pay for it
  options.store.lock_timeout_s = 5;
  // Levels are looked at right after commit; what goes on behind has tests of its own.
  options.pipeline.mode = pipeline_of_tests().empty() ? PipelineMode::inline_ : PipelineMode::background;
  options.pipeline.max_pending = 2;
  if (pipeline_of_tests() == "tcp") options.pipeline.messages = Messages::tcp;
  options.log.sink = [this](LogLevel, std::string_view line) {
    const std::lock_guard guard(log_mutex_);
    log_.emplace_back(line);
  };
}

DiskOptions SimulatedJob::memory_disk() {
  DiskOptions options;
  options.piece_bytes = 16384;
  options.power_loss = false;
  options.root.memory_backed = true;
  return options;
}

DiskOptions SimulatedJob::block_disk() {
  DiskOptions options;
  options.piece_bytes = 16384;
  options.power_loss = true;
  options.root.memory_backed = false;
  return options;
}

std::vector<testing::RankOutcome> SimulatedJob::start(const std::function<void(RankScope&)>& body, Crash crash,
                                                      std::uint64_t seed) {
  const bool has_workers = options.pipeline.mode == PipelineMode::background;
  testing::InProcessWorld world(ranks,
                                thread_support.value_or(has_workers ? ThreadSupport::multiple : ThreadSupport::single));
  if (plan) plan(world);
  plan = nullptr;
  disk.on_death([&](int rank) {
    world.mark_dead(rank);
    if (!kill_all_ranks) return;
    disk.stop_all(seed);
    for (int other = 0; other < ranks; ++other) world.mark_dead(other);
  });
  auto outcomes = world.run_connected([&](Communicator& communicator) {
    const int rank = communicator.rank();
    RankScope scope{rank, ranks, communicator, [&, rank] {
                      engine::EngineEnvironment environment;
                      environment.file_system = disk.view(rank);
                      environment.clock = clock_;
                      environment.ranks_per_node = ranks_per_node;
                      environment.pieces = pieces;
                      environment.view_shards_max = view_shards_max;
                      environment.waits_for_worker = pipeline_of_tests() == "waits" || pipeline_of_tests() == "tcp";
                      if (surroundings) surroundings(rank, environment);
                      if (!nodes.empty()) environment.node = nodes.at(static_cast<std::size_t>(rank));
                      auto engines = world.communicator(rank);
                      if (in_front) engines = in_front(rank, std::move(engines));
                      return engine::EngineEnvironment::make_engine(std::move(engines), options, environment);
                    }};
    body(scope);
  });
  operations.clear();
  reads.clear();
  events.clear();
  for (int rank = 0; rank < ranks; ++rank) {
    operations.push_back(disk.operations(rank));
    reads.push_back(disk.reads(rank));
    events.push_back(world.events(rank));
  }
  disk.on_death({});
  disk.restart(crash, seed);
  return outcomes;
}

std::vector<std::string> SimulatedJob::log() const {
  const std::lock_guard guard(log_mutex_);
  return log_;
}

bool SimulatedJob::logged(std::string_view part) const {
  const auto lines = log();
  return std::any_of(lines.begin(), lines.end(),
                     [&](const auto& line) { return line.find(part) != std::string::npos; });
}

std::string run_directory_of(const FaultyDisk& disk, const std::string& node) {
  const std::string start = (node.empty() ? "/nodes" : "/nodes/" + node) + "/kedge-1000-test-";
  std::string found;
  for (const auto& [path, entry] : disk.snapshot()) {
    if (!path.starts_with(start) || path.find('/', start.size()) != std::string::npos) continue;
    EXPECT_TRUE(found.empty()) << "both " << found << " and " << path;
    found = path;
  }
  return found;
}

std::vector<std::string> container_files(const FaultyDisk& disk, int rank) {
  const std::string mine = "/rank-" + std::to_string(rank) + ".";
  std::vector<std::string> files;
  for (const auto& [path, entry] : disk.snapshot()) {
    if (path.starts_with("/prefix/")) continue;
    if (path.find(mine) != std::string::npos && path.ends_with(".h5")) files.push_back(path);
  }
  return files;
}

}  // namespace kedge::faults
