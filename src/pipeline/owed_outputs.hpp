// Outputs that are to be on the prefix and are not: their flush failed, or a start before this one left them in the
// stores.
#pragma once

#include <atomic>
#include <functional>
#include <set>
#include <utility>
#include <vector>

#include "comm/group.hpp"
#include "commits/ledger.hpp"
#include "kedge/types.hpp"

namespace kedge::pipeline {

/// Which outputs are owed; the pipeline decides when they are flushed.
class OwedOutputs {
 public:
  explicit OwedOutputs(const commits::Ledger& ledger) : ledger_(ledger) {}

  /// Whether this start made any or found any: the same on every rank.
  [[nodiscard]] bool exist() const noexcept { return exist_; }
  /// One was committed.
  void made() noexcept { exist_ = true; }
  /// The stores were surveyed, and what was lost with a node was rebuilt.
  void found();
  /// From any thread. One could not be flushed, or there is another one to flush.
  void note() noexcept { is_noted_ = true; }
  [[nodiscard]] bool is_noted() const noexcept { return is_noted_; }
  /// Whether one was noted since this was asked last.
  [[nodiscard]] bool take_note() noexcept { return is_noted_.exchange(false); }
  /// COLLECTIVE. The oldest first, as rank 0 sees it, but for those that are in hand.
  [[nodiscard]] std::vector<CommitHead> list(const comm::Group& group,
                                             const std::function<bool(const Id128& commit_id)>& is_in_hand) const;
  /// Some rank has no container of it: not to be tried again before found().
  void set_out_of_reach(const Id128& commit_id) { out_of_reach_.insert(commit_id); }

 private:
  const commits::Ledger& ledger_;
  bool exist_ = false;
  std::atomic<bool> is_noted_ = false;
  std::set<Id128> out_of_reach_;
};

}  // namespace kedge::pipeline
