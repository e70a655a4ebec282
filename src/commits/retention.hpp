// Pure. Which commits to keep.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kedge/types.hpp"

namespace kedge::commits {

/// Whether each commit stays, given the levels that they have reached, newest first. The newest `keep` stay, and so
/// does an older one until a newer one has reached at least its level: what protects the job against the loss of a
/// node is not given up for something that does not.
[[nodiscard]] std::vector<bool> kept(std::span<const Level> newest_first, std::uint32_t keep);

}  // namespace kedge::commits
