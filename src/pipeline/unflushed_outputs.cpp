#include "pipeline/unflushed_outputs.hpp"

#include <algorithm>
#include <iterator>

#include "commits/commit_record.hpp"

namespace kedge::pipeline {

void UnflushedOutputs::found() {
  unflushable_.clear();
  exist_ = !ledger_.known().outputs_to_flush().empty();
  is_flush_requested_ = exist_;
}

std::vector<CommitHead> UnflushedOutputs::list(const comm::Group& group,
                                               const std::function<bool(const Id128& commit_id)>& is_in_hand) const {
  std::vector<commits::CommitRecord> records;
  if (group.is_root()) {
    for (const CommitHead& output : ledger_.known().outputs_to_flush()) {
      if (!is_in_hand(output.id) && !unflushable_.contains(output.id)) records.push_back(commits::to_record(output));
    }
  }
  group.broadcast(records);
  std::vector<CommitHead> outputs;
  std::ranges::transform(records, std::back_inserter(outputs), commits::to_head);
  return outputs;
}

}  // namespace kedge::pipeline
