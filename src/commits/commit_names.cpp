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

std::string ranks_text(std::span<const std::uint32_t> ranks) {
  constexpr int kRunsShown = 8;
  std::string text;
  int runs = 0;
  for (std::size_t first = 0; first < ranks.size(); ++runs) {
    if (runs == kRunsShown) return compose("{} and {} more", text, ranks.size() - first);
    std::size_t last = first;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    text += compose("{}{}", first == 0 ? "" : ", ", ranks[first]);
    if (last != first) text += compose("{}{}", last == first + 1 ? ", " : " to ", ranks[last]);
    first = last + 1;
  }
  return text;
}

}  // namespace kedge::commits
