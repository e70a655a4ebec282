// Lists commits by tag, for messages.
#pragma once

#include <string>
#include <vector>

#include "kedge/types.hpp"

namespace kedge::commits {

/// Returns the commits' tags for a message: "p1, p2 and 3 more". Pure.
[[nodiscard]] std::string list_tags(const std::vector<CommitHead>& commits);

}  // namespace kedge::commits
