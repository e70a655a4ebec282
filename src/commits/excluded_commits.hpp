// Commits that must not be opened again, and why.
#pragma once

#include <map>
#include <mutex>
#include <set>
#include <string>

#include "kedge/types.hpp"

namespace kedge::commits {

/// The excluded commits of this start. Thread-safe.
class ExcludedCommits {
 public:
  void add(const Id128& commit_id, std::string why);
  /// Returns why the commit is excluded; empty if it is not.
  [[nodiscard]] std::string reason(const Id128& commit_id) const;
  [[nodiscard]] std::set<Id128> ids() const;

 private:
  mutable std::mutex mutex_;
  std::map<Id128, std::string> reasons_;
};

}  // namespace kedge::commits
