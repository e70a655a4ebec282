// Commits in this node's stores that the prefix lacks.
#pragma once

#include <string>
#include <vector>

#include "base/json_forward.hpp"
#include "fs/file_system.hpp"
#include "kedge/types.hpp"
#include "tools/node_stores.hpp"
#include "tools/run_states.hpp"

namespace kedge::tools {

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
