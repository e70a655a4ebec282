// Finds a run's newest complete commit on the prefix.
#pragma once

#include <optional>
#include <set>
#include <vector>

#include "comm/group.hpp"
#include "kedge/types.hpp"
#include "persist/prefix_storage.hpp"
#include "persist/tag_entry.hpp"

namespace kedge::pipeline {

struct NewestWhole {
  std::optional<Id128> commit_id;  ///< none if no commit is complete
  std::set<Id128> broken;          ///< newer, incomplete ones
};

/// COLLECTIVE. Checks rank 0's `entries` in order until one is complete: all its containers exist and match manifest,
/// superblock and index. Equal on every rank.
[[nodiscard]] NewestWhole find_newest_whole(const comm::Group& group, persist::PrefixReader& prefix,
                                            const std::vector<persist::TagEntry>& entries);

}  // namespace kedge::pipeline
