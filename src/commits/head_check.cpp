#include "commits/head_check.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "commits/commit_selection.hpp"

namespace kedge::commits {

bool is_tag(std::string_view text) noexcept {
  const auto permitted = [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
           c == '-';
  };
  return !text.empty() && text.size() <= kTagBytesMax && text.front() != '.' && !is_latest(text) &&
         std::ranges::all_of(text, permitted);
}

std::optional<std::string> check_head(const CommitHead& head) {
  if (!is_tag(head.tag)) return "invalid tag";
  if (head.id.is_none()) return "the commit id is zero";
  if (head.generation == 0 || head.generation > kGenerationMax)
    return compose("invalid generation {}", head.generation);
  if (head.incarnation > kIncarnationMax) return compose("invalid incarnation {}", head.incarnation);
  if (head.world_size == 0 || head.world_size > kWorldSizeMax) return compose("invalid world size {}", head.world_size);
  return std::nullopt;
}

}  // namespace kedge::commits
