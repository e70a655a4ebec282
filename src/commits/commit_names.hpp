// Lists commits by tag, for messages.
#pragma once

#include <string>
#include <vector>

#include "kedge/types.hpp"

namespace kedge::commits {

/// Pure. "p1, p2 and 3 more".
[[nodiscard]] std::string listed(const std::vector<CommitHead>& commits);

}  // namespace kedge::commits
