// How a pipeline takes outputs to the prefix whose flush failed, or that a start before this one left in the stores.
#include <optional>
#include <vector>

#include "pipeline/pipeline.hpp"

namespace kedge::pipeline {

/// COLLECTIVE. Those that no worker has in hand.
std::vector<CommitHead> Pipeline::owed_outputs() const {
  return outputs_.list(group_, [&](const Id128& commit_id) { return worker_ && worker_->is_under_way(commit_id); });
}

/// COLLECTIVE. Inline, after a flush that succeeded. Stops at a failure, unless it is that some rank has no
/// container of the output.
void Pipeline::flush_owed_outputs() {
  if (!group_.any(!ledger_.outputs_to_flush().empty())) return;
  for (const CommitHead& output : owed_outputs()) {
    const auto failure = run(group_, *flush_, output, store::Reach::all);
    log_flush(output, failure);
    if (!failure) continue;
    if (failure->code != ErrorCode::not_found) return;
    outputs_.set_out_of_reach(output.id);
  }
}

/// COLLECTIVE. One with each commit, so that the worker has other things done too while the prefix is out of order.
void Pipeline::hand_over_owed_output() {
  const std::vector<CommitHead> owed = owed_outputs();
  if (owed.empty()) return;
  if (!hand_over(owed.front())) outputs_.set_out_of_reach(owed.front().id);
  if (owed.size() > 1) outputs_.note();
}

}  // namespace kedge::pipeline
