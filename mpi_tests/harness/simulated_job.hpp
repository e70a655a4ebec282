// A job in one process: ranks as threads, each with an engine, over a simulated disk.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "engine/engine_environment.hpp"
#include "harness/faulty_file_system.hpp"
#include "harness/testing_world.hpp"
#include "kedge/kedge.hpp"

namespace kedge::faults {

/// Time that passes only when somebody sleeps.
class FakeClock final : public Clock {
 public:
  std::int64_t wall_ns() override { return static_cast<std::int64_t>(seconds() * 1e9) + 1'700'000'000'000'000'000; }
  double seconds() override {
    const std::lock_guard guard(mutex_);
    return now_s_;
  }
  void sleep_for(std::chrono::duration<double> wait) override {
    const std::lock_guard guard(mutex_);
    now_s_ += wait.count();
  }

 private:
  std::mutex mutex_;
  double now_s_ = 0;
};

/// What a rank of the simulated job works with.
struct RankScope {
  int rank = 0;
  int ranks = 0;
  Communicator& communicator;
  std::function<Engine()> make_engine;
};

/// Several starts of one job on one disk: stores in /nodes/<node>, the prefix in /prefix.
class SimulatedJob {
 public:
  explicit SimulatedJob(int ranks, DiskOptions disk = memory_disk());

  /// Small pieces make many crash points; memory-backed, so that containers are mapped.
  [[nodiscard]] static DiskOptions memory_disk();
  [[nodiscard]] static DiskOptions block_disk();

  FaultyDisk disk;
  Options options;
  int ranks;

  /// Of the engines' environment.
  std::uint32_t ranks_per_node = 2;
  redundancy::PieceSettings pieces;
  std::uint64_t view_shards_max = persist::kViewShardsMax;

  /// The node of each rank; empty: `ranks_per_node` consecutive ranks on each of "node0", "node1", ...
  std::vector<std::string> nodes;

  /// One rank's death in the file system is the death of all (power, or the batch system's kill).
  bool kill_all_ranks = false;

  /// What the communicators of the next starts say; none: multiple if there are workers, else single.
  std::optional<ThreadSupport> thread_support;

  /// Plans message faults for the next start: called with its world before it runs.
  std::function<void(testing::InProcessWorld&)> plan;

  /// Changes what an engine of this rank stands in: its node, its machine, its environment variables.
  std::function<void(int rank, engine::EngineEnvironment&)> surroundings;

  /// What an engine of this rank gets for its communicator, if not that itself.
  std::function<std::unique_ptr<Communicator>(int rank, std::unique_ptr<Communicator>)> in_front;

  /// One start: every rank runs `body`; ranks that die in the file system are dead for the others. Afterwards
  /// everything of that start is gone from memory and its locks are released.
  std::vector<testing::RankOutcome> start(const std::function<void(RankScope&)>& body, Crash crash = Crash::process,
                                          std::uint64_t seed = 0);

  /// Between two starts, so that a commit of the second is later than those of the first.
  void advance_clock(std::chrono::duration<double> time) { clock_->sleep_for(time); }

  /// Operations, reads and message events of each rank in the last start.
  std::vector<std::uint64_t> operations;
  std::vector<std::uint64_t> reads;
  std::vector<std::uint64_t> events;
  /// All lines that engines logged, of all starts.
  [[nodiscard]] std::vector<std::string> log() const;
  [[nodiscard]] bool logged(std::string_view part) const;

 private:
  std::shared_ptr<FakeClock> clock_ = std::make_shared<FakeClock>();
  mutable std::mutex log_mutex_;
  std::vector<std::string> log_;
};

/// The directory of the run `test` in the store of a node of this name, or of /nodes itself if `node` is empty; empty
/// if it has none. The test fails if there are several.
[[nodiscard]] std::string run_directory_of(const FaultyDisk& disk, const std::string& node);

/// Names of rank's container files in the stores.
[[nodiscard]] std::vector<std::string> container_files(const FaultyDisk& disk, int rank);

}  // namespace kedge::faults
