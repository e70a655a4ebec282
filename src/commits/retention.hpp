// Decides which commits to keep. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kedge/types.hpp"

namespace kedge::commits {

/// Returns for each commit whether it stays, given the levels that the commits have reached, newest first. The newest
/// `store_keep` stay, and so does an older one until a newer one has reached at least its level: a commit that protects
/// the job against the loss of a node is not removed for one that does not.
[[nodiscard]] std::vector<bool> select_by_level(std::span<const Level> newest_first, std::uint32_t store_keep);

}  // namespace kedge::commits
