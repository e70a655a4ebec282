// Lists commits by tag, and ranks, for messages.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "kedge/types.hpp"

namespace kedge::commits {

/// Returns the commits' tags for a message: "p1, p2 and 3 more". Pure.
[[nodiscard]] std::string list_tags(const std::vector<CommitHead>& commits);

/// Pure. Ranks from ascending ones: "0 to 3, 6"; after eight runs "and 5 more".
[[nodiscard]] std::string ranks_text(std::span<const std::uint32_t> ranks);

}  // namespace kedge::commits
