#include "pipeline/lost_snapshots.hpp"

#include <algorithm>

namespace kedge::pipeline {

void LostSnapshots::add(const CommitHead& commit, const Failure& failure) {
  const std::lock_guard guard(mutex_);
  lost_.push_front({commit, failure});
  if (lost_.size() > kMost) lost_.pop_back();
}

void LostSnapshots::forget(std::string_view tag) {
  const std::lock_guard guard(mutex_);
  std::erase_if(lost_, [&](const Lost& lost) { return lost.commit.tag == tag; });
}

std::optional<LostSnapshots::Lost> LostSnapshots::newest() const {
  const std::lock_guard guard(mutex_);
  return lost_.empty() ? std::nullopt : std::optional(lost_.front());
}

std::optional<LostSnapshots::Lost> LostSnapshots::find(std::string_view tag) const {
  const std::lock_guard guard(mutex_);
  const auto found = std::ranges::find_if(lost_, [&](const Lost& lost) { return lost.commit.tag == tag; });
  return found == lost_.end() ? std::nullopt : std::optional(*found);
}

}  // namespace kedge::pipeline
