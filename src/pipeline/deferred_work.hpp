// Work deferred by an open: done at once in the call, or step by step in the background.
#pragma once

#include <deque>
#include <optional>

#include "base/log.hpp"
#include "commits/ledger.hpp"
#include "kedge/error.hpp"
#include "pipeline/background_pause.hpp"
#include "pipeline/execution.hpp"
#include "pipeline/progress.hpp"
#include "pipeline/protect_stage.hpp"
#include "pipeline/stage_list.hpp"
#include "pipeline/stage_runner.hpp"
#include "pipeline/unread_files.hpp"
#include "store/node_store.hpp"

namespace kedge::pipeline {

/// Protects the opened commit at its new location, and reads what the open did not need: parity, and other commits in
/// the stores. All calls are COLLECTIVE on the execution's group and throw what ends communication.
class DeferredWork {
 public:
  /// `protect` is one of `stages`. The referenced objects must outlive it.
  DeferredWork(store::NodeStore& store, commits::Ledger& ledger, const ProtectStage& protect, StageList& stages,
               StageRunner& runner, const CommitObservers& observers, BackgroundPause& pause, const StageTimer& timer,
               const Log& log);

  /// Finds the work left by this open. Returns the commit to be protected, or none.
  [[nodiscard]] Id128 plan_work(const Execution& execution, const CommitHead& opened, UnreadWork unread);
  /// Finds what is to be read of a commit that another number of ranks saved, whose files are left alone.
  void plan_of_other_ranks(const CommitHead& opened, bool reads_others);
  /// Does the next step; false if nothing is left. All ranks decide on the step together, because their knowledge of
  /// commits may differ for a moment.
  [[nodiscard]] bool run_step(Execution& execution);

 private:
  /// The remaining work, in this order; equal on every rank.
  struct Remaining {
    CommitHead opened = {};
    bool must_protect = false;             ///< protect it at its new location
    std::deque<UnreadCommit> unread = {};  ///< the opened commit first
    bool must_drop_copies = false;         ///< remove its copies on nodes that their owners have left
  };

  [[nodiscard]] bool is_scheduled() const { return stages_.is_scheduled(Level::protected_); }
  [[nodiscard]] Protections find_protections(const comm::Group& group, const CommitHead& commit);
  void protect_opened(Execution& execution);
  void read_unread_files(Execution& execution);
  void handle_damage(Execution& execution, const UnreadCommit& unread, const ReadResult& read, const Failure& first);
  void handle_damaged_container(Execution& execution, const CommitHead& commit, const Failure& first);
  [[nodiscard]] std::optional<Failure> protect_with_space(Execution& execution, const CommitHead& commit);
  [[nodiscard]] bool drop_former_copies(const comm::Group& group, const CommitHead& commit);
  void drop_stages(const CommitHead& commit, const Failure& failure);
  void add_older_commits();
  [[nodiscard]] std::string after_damaged_parity(Execution& execution, const CommitHead& commit);
  void log_not_protected(const CommitHead& commit, const Failure& failure);

  store::NodeStore& store_;
  commits::Ledger& ledger_;
  const ProtectStage& protect_;
  StageList& stages_;
  StageRunner& runner_;
  const CommitObservers& observers_;
  BackgroundPause& pause_;
  const StageTimer& timer_;
  Log log_;
  Remaining remaining_;
  UnreadFilesReader unread_files_;
};

}  // namespace kedge::pipeline
