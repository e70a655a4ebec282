// Pure. Selects the candidate that the application asked for.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kedge/selection.hpp"
#include "recovery/survey.hpp"

namespace kedge::recovery {

/// Decision of open(), equal on every rank.
struct Choice {
  /// Index of the candidate to open; nothing if there is none.
  std::optional<std::size_t> chosen;
  /// Indices of newer matching candidates that cannot be recovered.
  std::vector<std::size_t> skipped;
  /// Why finding nothing is an error; empty if the run has no such commit.
  std::string lost;
  /// With `lost`: all matching commits were saved by other numbers of ranks.
  bool other_ranks = false;
  /// There are commits, but none with the tag of a Before.
  bool is_bound_unknown = false;
};

/// `commits_exist`: the run record says that a commit returned once.
[[nodiscard]] Choice choose(const Survey& survey, const Selection& selection, bool commits_exist);

}  // namespace kedge::recovery
