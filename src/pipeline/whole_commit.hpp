// Which of a run's commits on the prefix has all its containers.
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
  std::optional<Id128> commit_id;  ///< none: no commit is whole
  std::set<Id128> broken;          ///< newer ones
};

/// COLLECTIVE. Looks through rank 0's `entries`, in their order, until one is whole: the ranks see each of its
/// containers, by manifest, superblock and index the one that was committed. The same on every rank.
[[nodiscard]] NewestWhole find_newest_whole(const comm::Group& group, persist::PrefixStorage& prefix_storage,
                                            const std::vector<persist::TagEntry>& entries);

}  // namespace kedge::pipeline
