#include "commits/excluded_commits.hpp"

#include <utility>

namespace kedge::commits {

void ExcludedCommits::add(const Id128& commit_id, std::string why) {
  const std::lock_guard guard(mutex_);
  reasons_[commit_id] = std::move(why);
}

std::string ExcludedCommits::reason(const Id128& commit_id) const {
  const std::lock_guard guard(mutex_);
  const auto found = reasons_.find(commit_id);
  return found == reasons_.end() ? "" : found->second;
}

std::set<Id128> ExcludedCommits::ids() const {
  const std::lock_guard guard(mutex_);
  std::set<Id128> ids;
  for (const auto& [id, why] : reasons_) ids.insert(id);
  return ids;
}

}  // namespace kedge::commits
