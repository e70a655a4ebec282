// Commits that must not be opened again, and why.
#pragma once

#include <map>
#include <mutex>
#include <set>
#include <string>

#include "kedge/types.hpp"

namespace kedge::commits {

/// Every member may be called from any thread.
class ExcludedCommits {
 public:
  void add(const Id128& commit_id, std::string why);
  /// Empty if it is not excluded.
  [[nodiscard]] std::string why(const Id128& commit_id) const;
  [[nodiscard]] std::set<Id128> ids() const;

 private:
  mutable std::mutex mutex_;
  std::map<Id128, std::string> why_;
};

}  // namespace kedge::commits
