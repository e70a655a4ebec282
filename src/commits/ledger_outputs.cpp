// Outputs in the ledger: those not yet on the prefix, and the last that left the stores after their flush.
#include <algorithm>

#include "commits/ledger.hpp"

namespace kedge::commits {
namespace {

constexpr std::size_t kFlushedOutputsKnown = 64;

}  // namespace

std::vector<CommitHead> Ledger::outputs_to_flush() const {
  const std::lock_guard guard(mutex_);
  std::vector<CommitHead> outputs;
  for (const Entry& entry : entries_) {
    if (entry.commit.is_output && !entry.persistent) outputs.insert(outputs.begin(), entry.commit);
  }
  return outputs;
}

std::vector<CommitHead> Ledger::unflushed_outputs() const {
  std::vector<CommitHead> outputs = outputs_to_flush();
  const std::lock_guard guard(mutex_);
  outputs.insert(outputs.end(), outputs_of_others_.begin(), outputs_of_others_.end());
  std::ranges::sort(outputs, {}, &CommitHead::generation);
  return outputs;
}

/// An output leaves the stores once it is on the prefix, but calls may still ask for it.
void Ledger::remember(const Entry& output) {
  const auto is_it = [&](const Entry& other) { return other.commit.id == output.commit.id; };
  if (std::ranges::any_of(flushed_outputs_, is_it)) return;
  const auto is_older = [&](const Entry& other) { return is_newer(output.commit, other.commit); };
  flushed_outputs_.insert(std::ranges::find_if(flushed_outputs_, is_older), output);
  if (flushed_outputs_.size() > kFlushedOutputsKnown) flushed_outputs_.pop_back();
}

}  // namespace kedge::commits
