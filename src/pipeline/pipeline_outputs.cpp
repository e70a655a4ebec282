// How a pipeline takes outputs to the prefix whose flush failed, or that a start before this one left in the stores.
#include <algorithm>
#include <iterator>
#include <optional>
#include <vector>

#include "commits/commit_record.hpp"
#include "pipeline/pipeline.hpp"

namespace kedge::pipeline {

/// COLLECTIVE. Those that no worker has in hand, the oldest first, as rank 0 sees it.
std::vector<CommitHead> Pipeline::owed_outputs() const {
  std::vector<commits::CommitRecord> records;
  if (group_.is_root()) {
    for (const CommitHead& output : ledger_.outputs_to_flush()) {
      const bool is_in_hand = worker_ && worker_->is_under_way(output.id);
      if (!is_in_hand && !out_of_reach_.contains(output.id)) records.push_back(commits::to_record(output));
    }
  }
  group_.broadcast(records);
  std::vector<CommitHead> outputs;
  std::ranges::transform(records, std::back_inserter(outputs), commits::to_head);
  return outputs;
}

/// COLLECTIVE. Inline, after a flush that succeeded. Stops at a failure, unless it is that some rank has no
/// container of the output.
void Pipeline::flush_owed_outputs() {
  if (!group_.any(!ledger_.outputs_to_flush().empty())) return;
  for (const CommitHead& output : owed_outputs()) {
    const auto failure = run(group_, *flush_, output, store::Reach::all);
    say_if_flushed(output, failure);
    if (!failure) continue;
    if (failure->code != ErrorCode::not_found) return;
    out_of_reach_.insert(output.id);
  }
}

/// COLLECTIVE. One with each commit, so that the worker has other things done too while the prefix is out of order.
void Pipeline::hand_over_owed_output() {
  const std::vector<CommitHead> owed = owed_outputs();
  if (owed.empty()) return;
  if (!hand_over(owed.front())) out_of_reach_.insert(owed.front().id);
  output_owed_ = owed.size() > 1;
}

}  // namespace kedge::pipeline
