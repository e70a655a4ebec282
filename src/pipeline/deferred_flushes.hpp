// Flushes that were left for later: of outputs whose flush failed or that an earlier start left in the stores, and of
// the newest checkpoint at the job's end.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <vector>

#include "comm/group.hpp"
#include "commits/ledger.hpp"
#include "kedge/error.hpp"
#include "kedge/types.hpp"
#include "pipeline/executor.hpp"
#include "pipeline/stage_list.hpp"
#include "pipeline/stage_runner.hpp"
#include "pipeline/waits.hpp"

namespace kedge::pipeline {

/// Knows which outputs are unflushed; the pipeline decides when to flush them.
class UnflushedOutputs {
 public:
  explicit UnflushedOutputs(const commits::Ledger& ledger) : ledger_(ledger) {}

  /// Whether this start made or found outputs; equal on every rank.
  [[nodiscard]] bool has_any() const noexcept { return has_any_; }
  /// An output was committed.
  void mark_made() noexcept { has_any_ = true; }
  /// The stores were surveyed, and lost files rebuilt.
  void mark_surveyed();
  /// Thread-safe. A flush of an output failed, or another output must be flushed.
  void request_flush() noexcept { is_flush_requested_ = true; }
  /// Whether request_flush() was called since the last call.
  [[nodiscard]] bool take_flush_request() noexcept { return is_flush_requested_.exchange(false); }
  /// COLLECTIVE. Unflushed outputs that are not submitted, oldest first, as rank 0 knows them.
  [[nodiscard]] std::vector<CommitHead> list_unflushed(
      const comm::Group& group, const std::function<bool(const Id128& commit_id)>& is_in_hand) const;
  /// A rank lacks its container of this output: not tried again before mark_surveyed().
  void mark_unflushable(const Id128& commit_id) { unflushable_.insert(commit_id); }

 private:
  const commits::Ledger& ledger_;
  bool has_any_ = false;
  std::atomic<bool> is_flush_requested_ = false;
  std::set<Id128> unflushable_;
};

/// COLLECTIVE unless a call says local. Throws what ends communication.
class DeferredFlushes {
 public:
  /// `at_end`: whether the newest checkpoint is flushed at the job's end, if checkpoints are flushed automatically. The
  /// referenced objects must outlive it.
  DeferredFlushes(comm::Group group, commits::Ledger& ledger, UnflushedOutputs& outputs, StageList& stages,
                  StageRunner& runner, Executor& executor, Waits& waits, bool at_end);

  /// After a successful flush, flushes the remaining outputs. Stops at a failure, unless a rank lacks its container of
  /// the output.
  void flush_outputs();
  /// Submits one unflushed output to the worker. Called once per commit, so that other work proceeds while the prefix
  /// fails.
  void submit_next_output();

  /// Outcome of the job's end, equal on all ranks.
  enum class FinishResult : std::uint8_t {
    done,         ///< the newest commit is where it should be
    not_flushed,  ///< the flush failed, which was logged
    timed_out     ///< work is still pending
  };
  /// At the job's end, flushes everything that is left, with a worker until the deadline, if any. False on all ranks if
  /// time ran out.
  [[nodiscard]] bool flush_all(std::optional<Deadline> deadline);
  /// Whether nothing is left to flush.
  [[nodiscard]] bool is_empty() const { return unflushed_commits().empty(); }

 private:
  [[nodiscard]] std::vector<CommitHead> unflushed_outputs() const;
  [[nodiscard]] std::vector<CommitHead> unflushed_commits() const;
  void flush_commits(const std::vector<CommitHead>& owed);
  [[nodiscard]] std::optional<Failure> submit_flush(const CommitHead& commit);

  comm::Group group_;
  commits::Ledger& ledger_;
  UnflushedOutputs& outputs_;
  StageList& stages_;
  StageRunner& runner_;
  Executor& executor_;
  Waits& waits_;
  bool flushes_at_end_;
  std::size_t flush_stage_;  ///< number of the flush stage
};

}  // namespace kedge::pipeline
