#include "commits/commit_names.hpp"

#include <cstddef>

#include "base/text.hpp"

namespace kedge::commits {

std::string list_tags(const std::vector<CommitHead>& commits) {
  constexpr std::size_t kNamedMax = 8;
  std::string text;
  for (std::size_t i = 0; i < commits.size() && i < kNamedMax; ++i) {
    text += (i == 0 ? "" : ", ") + commits[i].tag;
  }
  if (commits.size() > kNamedMax) text += compose(" and {} more", commits.size() - kNamedMax);
  return text;
}

}  // namespace kedge::commits
