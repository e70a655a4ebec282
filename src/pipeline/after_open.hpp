// What is left to do after an open: in the call at once, in the background step by step.
#pragma once

#include <deque>
#include <optional>

#include "base/log.hpp"
#include "commits/ledger.hpp"
#include "kedge/error.hpp"
#include "pipeline/execution.hpp"
#include "pipeline/pause.hpp"
#include "pipeline/progress.hpp"
#include "pipeline/protect_stage.hpp"
#include "pipeline/stage_list.hpp"
#include "pipeline/stage_runner.hpp"
#include "pipeline/unread_files.hpp"
#include "store/node_store.hpp"

namespace kedge::pipeline {

/// Protects the commit that was opened where its containers lie now, and reads what the open did not need: parity, and
/// the other commits in the stores. All calls are COLLECTIVE on the execution's group, and throw what ends
/// communication.
class AfterOpen {
 public:
  /// `protect` is one of the stages. All that is referred to must outlive it.
  AfterOpen(store::NodeStore& store, commits::Ledger& ledger, const ProtectStage& protect, StageList& stages,
            StageRunner& runner, const CommitObservers& observers, Pause& pause, const StageTimer& timer,
            const Log& log);

  /// Finds what there is to do after this open. The commit that is to be protected, unless none.
  [[nodiscard]] Id128 plan(const Execution& execution, const CommitHead& opened, Unread unread);
  /// Does the next step. False if nothing is left. All ranks decide together what the step is, since what one knows of
  /// commits may be a moment older than what another does.
  [[nodiscard]] bool step(Execution& execution);

 private:
  /// What is left, in this order. The same on every rank.
  struct Left {
    CommitHead opened = {};
    bool protects = false;                 ///< it is to be protected where its containers lie now
    std::deque<UnreadCommit> unread = {};  ///< what was opened first
    bool drops_copies = false;             ///< of it, on nodes that its owners have left
  };

  [[nodiscard]] bool is_scheduled() const { return stages_.is_scheduled(Level::protected_); }
  [[nodiscard]] Protections find_protections(const comm::Group& group, const CommitHead& commit);
  void protect(Execution& execution);
  void read(Execution& execution);
  void handle_damage(Execution& execution, const UnreadCommit& what, const ReadFiles& read, const Failure& first);
  void handle_damaged_container(Execution& execution, const CommitHead& commit, const Failure& first);
  [[nodiscard]] std::optional<Failure> protect_in_room(Execution& execution, const CommitHead& commit);
  [[nodiscard]] bool drop_former_copies(const comm::Group& group, const CommitHead& commit);
  void give_up(const CommitHead& commit, const Failure& failure);
  void log_not_protected(const CommitHead& commit, const Failure& failure);

  store::NodeStore& store_;
  commits::Ledger& ledger_;
  const ProtectStage& protect_;
  StageList& stages_;
  StageRunner& runner_;
  const CommitObservers& observers_;
  Pause& pause_;
  const StageTimer& timer_;
  Log log_;
  Left left_;
  UnreadFiles unread_files_;
};

}  // namespace kedge::pipeline
