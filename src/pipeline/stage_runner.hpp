// Runs stages of commits in the calling thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/log.hpp"
#include "commits/ledger.hpp"
#include "kedge/error.hpp"
#include "pipeline/background_pause.hpp"
#include "pipeline/execution.hpp"
#include "pipeline/executor.hpp"
#include "pipeline/progress.hpp"
#include "pipeline/stage_costs.hpp"
#include "pipeline/stage_list.hpp"
#include "store/node_store.hpp"

namespace kedge::pipeline {

/// Numbers of commits that the stores must have space for.
struct StoreCapacity {
  std::uint32_t store_keep = 1;  ///< commits that store.keep keeps
  std::size_t max_pending = 1;   ///< pending commits in the background, including the one being written
};

/// Only this class removes superseded commits from the stores, whenever a commit has reached a higher level. All calls
/// are COLLECTIVE on the execution's group unless they say local, and throw what ends communication.
class StageRunner {
 public:
  /// The referenced objects must outlive it.
  StageRunner(store::NodeStore& store, commits::Ledger& ledger, StageList& stages, const CommitObservers& observers,
              BackgroundPause& pause, StageTimer& timer, StoreCapacity capacity, const Log& log);

  /// Local. Restarts the limit of pauses for a new piece of work.
  void begin_work() { pause_.restart_limit(); }
  /// If any stage is due, pins the container and prepares the stages; one that cannot be prepared has failed.
  void prepare_stages(Execution& execution, Job& job);
  /// Runs the stages that are due.
  void run_due_stages(Execution& execution, Job& job);
  /// Runs one stage now, due or not, while nothing else is pending. Returns the failure, alike on all ranks.
  [[nodiscard]] std::optional<Failure> run_stage(Execution& execution, std::size_t stage, const CommitHead& commit,
                                                 Reason reason);
  /// Local. Removes superseded commits from this node's store.
  void retire_superseded(const Execution& execution);
  /// Local. Prepares a file for the next checkpoint's container, if there is space.
  void prepare_next_container(const Execution& execution, std::uint64_t size_bytes);

 private:
  void run_with_retries(Execution& execution, Job& job, std::size_t stage);
  void run_once(Execution& execution, Job& job, std::size_t stage);
  void handle_failure(Execution& execution, Job& job, std::size_t stage, const Failure& failure);

  store::NodeStore& store_;
  commits::Ledger& ledger_;
  StageList& stages_;
  const CommitObservers& observers_;
  BackgroundPause& pause_;
  StageTimer& timer_;
  StoreCapacity capacity_;
  Log log_;
};

}  // namespace kedge::pipeline
