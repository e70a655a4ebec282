// Commits in stores of this node that the prefix has not.
#pragma once

#include <string>
#include <vector>

#include "base/json_forward.hpp"
#include "fs/file_system.hpp"
#include "kedge/types.hpp"
#include "persist/tags.hpp"
#include "tools/node_stores.hpp"
#include "tools/run_states.hpp"

namespace kedge::tools {

struct UnflushedCommits {
  std::string directory;
  Id128 run_id;
  std::vector<CommitHead> commits;  ///< newest first: the newest checkpoint, if it is newer, and outputs; may be empty
};

/// Local. News of these stores, which flush to the prefix that has `list`; those of a run that was given up have
/// nothing that anybody waits for.
[[nodiscard]] std::vector<UnflushedCommits> find_unflushed(fs::FileSystem& file_system,
                                                           const std::vector<Store>& stores,
                                                           const persist::TagList& list, const RunStates& states);

/// A line for each store that has something, folded; empty if none has.
[[nodiscard]] std::string words_for(const std::vector<UnflushedCommits>& news);
[[nodiscard]] Json to_json(const std::vector<UnflushedCommits>& news);

}  // namespace kedge::tools
