// Commits in this node's stores that the prefix lacks.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_forward.hpp"
#include "fs/file_system.hpp"
#include "kedge/types.hpp"
#include "persist/tags.hpp"
#include "tools/node_stores.hpp"

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

struct UnflushedCommits {
  std::string directory;
  Id128 run_id;
  std::vector<CommitHead> commits;  ///< newest first: outputs, and the newest checkpoint if the prefix's is older
};

/// Local. Unflushed commits in stores that flush to the prefix with this `list`; none of runs that were given up.
[[nodiscard]] std::vector<UnflushedCommits> find_unflushed(fs::FileSystem& file_system,
                                                           const std::vector<Store>& stores,
                                                           const persist::TagList& list, const RunStates& states);

/// A folded line for each store with unflushed commits; empty if there are none.
[[nodiscard]] std::string describe_unflushed(const std::vector<UnflushedCommits>& news);
[[nodiscard]] Json to_json(const std::vector<UnflushedCommits>& news);

}  // namespace kedge::tools
