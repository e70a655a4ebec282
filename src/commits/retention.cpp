#include "commits/retention.hpp"

#include <algorithm>

namespace kedge::commits {

std::vector<bool> select_by_level(std::span<const Level> newest_first, std::uint32_t store_keep) {
  std::vector<bool> stays;
  Level highest_newer = Level::none;
  for (const Level level : newest_first) {
    stays.push_back(stays.size() < store_keep || level > highest_newer);
    highest_newer = std::max(highest_newer, level);
  }
  return stays;
}

}  // namespace kedge::commits
