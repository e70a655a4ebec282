// Which of the runs of one name on a prefix a start would go on with.
#pragma once

#include <map>
#include <string_view>

#include "fs/file_system.hpp"
#include "kedge/types.hpp"

namespace kedge::tools {

enum class RunState { unknown, present, given_up };

/// By what the records of the prefix say.
class RunStates {
 public:
  /// Reads them. Records that cannot be read say nothing.
  RunStates(fs::FileSystem& file_system, const std::string& prefix);

  [[nodiscard]] RunState of(const Id128& run_id) const;

 private:
  std::map<Id128, RunState> states_;
};

/// For the heading of a run's table; empty if nothing is known.
[[nodiscard]] std::string_view state_text(RunState state);
/// For programs: "present", "given_up" or "unknown".
[[nodiscard]] std::string_view to_string(RunState state);

}  // namespace kedge::tools
