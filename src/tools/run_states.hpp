// Finds which of a prefix's runs with the same name a start would continue.
#pragma once

#include <map>
#include <string_view>

#include "fs/file_system.hpp"
#include "kedge/types.hpp"

namespace kedge::tools {

enum class RunState { unknown, present, given_up };

/// As far as the records on the prefix tell.
class RunStates {
 public:
  /// Reads the records; ignores unreadable ones.
  RunStates(fs::FileSystem& file_system, const std::string& prefix);

  [[nodiscard]] RunState of(const Id128& run_id) const;

 private:
  std::map<Id128, RunState> states_;
};

/// For the heading of a run's table; empty if unknown.
[[nodiscard]] std::string_view state_text(RunState state);
/// For programs: "present", "given_up" or "unknown".
[[nodiscard]] std::string_view to_string(RunState state);

}  // namespace kedge::tools
