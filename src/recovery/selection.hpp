// Which of the candidates an application asked for: pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kedge/selection.hpp"
#include "recovery/survey.hpp"

namespace kedge::recovery {

/// Decision of open(), from values that are the same on every rank.
struct Choice {
  /// Index into the candidates; nothing if there is none to open.
  std::optional<std::size_t> chosen;
  /// Indices of newer candidates that were asked for and cannot be recovered.
  std::vector<std::size_t> skipped;
  /// Why it is an error that nothing was chosen; empty if the run simply has no such commit.
  std::string lost;
  /// With `lost`: all that was asked for was saved by another number of ranks.
  bool other_ranks = false;
  /// Whether there are commits, and none of the tag that a Before names.
  bool is_bound_unknown = false;
};

/// `commits_exist`: the run record says that a commit returned once.
[[nodiscard]] Choice choose(const Survey& survey, const Selection& selection, bool commits_exist);

}  // namespace kedge::recovery
