// Commits that take up the space in a store beside the newest one, for the message of a checkpoint that did not fit.
#pragma once

#include <cstdint>
#include <string>

#include "commits/ledger.hpp"

namespace kedge::engine {

/// Pure. Which older commit or outputs stay and why, to be appended to a message; empty if none stay longer than usual.
[[nodiscard]] std::string describe_kept_commits(const commits::Ledger& ledger, std::uint32_t keep, bool has_work_left);

}  // namespace kedge::engine
