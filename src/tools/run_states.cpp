#include "tools/run_states.hpp"

#include "base/attempt.hpp"
#include "persist/prefix_runs.hpp"
#include "persist/run_record.hpp"

namespace kedge::tools {

RunStates::RunStates(fs::FileSystem& file_system, const std::string& prefix) {
  const std::string records = persist::records_directory(prefix);
  (void)attempt([&] {
    if (!file_system.status(records)) return;
    for (const std::string& name : file_system.list(records)) {
      (void)attempt([&] {
        const auto record = persist::read_run_record(file_system, fs::join(records, name)).record;
        if (!record) return;
        for (const Id128& run_id : record->given_up) states_.emplace(run_id, RunState::given_up);
        states_[record->run_id] = RunState::present;
      });
    }
  });
}

RunState RunStates::of(const Id128& run_id) const {
  const auto found = states_.find(run_id);
  return found == states_.end() ? RunState::unknown : found->second;
}

std::string_view state_text(RunState state) {
  switch (state) {
    case RunState::present: return "the prefix's current run";
    case RunState::given_up: return "an older run, given up by start = fresh or adopt";
    default: return {};
  }
}

std::string_view to_string(RunState state) {
  switch (state) {
    case RunState::present: return "present";
    case RunState::given_up: return "given_up";
    default: return "unknown";
  }
}

}  // namespace kedge::tools
