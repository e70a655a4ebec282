// Takes commits through stages, on whichever thread calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/log.hpp"
#include "commits/ledger.hpp"
#include "kedge/error.hpp"
#include "pipeline/execution.hpp"
#include "pipeline/job.hpp"
#include "pipeline/pause.hpp"
#include "pipeline/progress.hpp"
#include "pipeline/stage_costs.hpp"
#include "pipeline/stage_list.hpp"
#include "store/node_store.hpp"

namespace kedge::pipeline {

/// What the stores keep.
struct StoreRoom {
  std::uint32_t keep = 1;       ///< commits
  std::size_t max_pending = 1;  ///< in the background: commits under way, with the one being written
};

/// Superseded commits leave the stores here and nowhere else: what takes a commit to a higher level also retires those
/// that it supersedes. Everything is COLLECTIVE on the execution's group, unless it says that it is local, and throws
/// what ends communication.
class StageRunner {
 public:
  /// All that is referred to must outlive it.
  StageRunner(store::NodeStore& store, commits::Ledger& ledger, StageList& stages, const CommitObservers& observers,
              Pause& pause, StageTimer& timer, StoreRoom room, const Log& log);

  /// Local. Another piece of work begins: how long it may stand still for the application counts anew.
  void begin() { pause_.begin(); }
  /// If any stage is due. Pins the container and prepares the stages; one that cannot be prepared has failed.
  void prepare(Execution& execution, Job& job);
  /// Takes the commit through the stages that are due.
  void run(Execution& execution, Job& job);
  /// Takes a commit through one stage now, whether it is due or not; nothing else is under way. The failure, the same
  /// on every rank.
  [[nodiscard]] std::optional<Failure> run_now(Execution& execution, std::size_t stage, const CommitHead& commit,
                                               Reason reason);
  /// Local. Removes superseded commits from this node's store.
  void retire(const Execution& execution);
  /// Local. Makes the next checkpoint's container ready, if there is room.
  void prepare_next_container(const Execution& execution, std::uint64_t size_bytes);

 private:
  void run_with_retries(Execution& execution, Job& job, std::size_t stage);
  void run_once(Execution& execution, Job& job, std::size_t stage);
  void fail(Execution& execution, Job& job, std::size_t stage, const Failure& failure);

  store::NodeStore& store_;
  commits::Ledger& ledger_;
  StageList& stages_;
  const CommitObservers& observers_;
  Pause& pause_;
  StageTimer& timer_;
  StoreRoom room_;
  Log log_;
};

}  // namespace kedge::pipeline
