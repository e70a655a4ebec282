// Outputs that are not on the prefix yet, because their flush failed or an earlier start left them in the stores.
#pragma once

#include <atomic>
#include <functional>
#include <set>
#include <vector>

#include "comm/group.hpp"
#include "commits/ledger.hpp"
#include "kedge/types.hpp"

namespace kedge::pipeline {

/// Knows which outputs are unflushed; the pipeline decides when to flush them.
class UnflushedOutputs {
 public:
  explicit UnflushedOutputs(const commits::Ledger& ledger) : ledger_(ledger) {}

  /// Whether this start made or found outputs; equal on every rank.
  [[nodiscard]] bool exist() const noexcept { return exist_; }
  /// An output was committed.
  void made() noexcept { exist_ = true; }
  /// The stores were surveyed, and lost files rebuilt.
  void found();
  /// Thread-safe. A flush of an output failed, or another output must be flushed.
  void request_flush() noexcept { is_flush_requested_ = true; }
  [[nodiscard]] bool is_flush_requested() const noexcept { return is_flush_requested_; }
  /// Whether request_flush() was called since the last call.
  [[nodiscard]] bool take_flush_request() noexcept { return is_flush_requested_.exchange(false); }
  /// COLLECTIVE. Unflushed outputs that are not submitted, oldest first, as rank 0 knows them.
  [[nodiscard]] std::vector<CommitHead> list(const comm::Group& group,
                                             const std::function<bool(const Id128& commit_id)>& is_in_hand) const;
  /// A rank lacks its container of this output: not tried again before found().
  void mark_unflushable(const Id128& commit_id) { unflushable_.insert(commit_id); }

 private:
  const commits::Ledger& ledger_;
  bool exist_ = false;
  std::atomic<bool> is_flush_requested_ = false;
  std::set<Id128> unflushable_;
};

}  // namespace kedge::pipeline
