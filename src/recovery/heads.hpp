// What the containers of one commit say of it, held against each other: a header may lie and have a right checksum.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "comm/group.hpp"
#include "kedge/types.hpp"

namespace kedge::recovery {

/// What is to be believed in place of what one container says.
struct Contradiction {
  std::size_t index = 0;           ///< of the head that is contradicted
  std::optional<CommitHead> head;  ///< what most containers of the commit say; nothing if as many say something else
};

/// COLLECTIVE. `heads` are those of this process's containers. Those that say of a commit id something else than most
/// containers of all processes do, in ascending order. Of the ids alone nobody is told but their home processes.
[[nodiscard]] std::vector<Contradiction> find_contradictions(const comm::Group& group,
                                                             std::span<const CommitHead> heads);

}  // namespace kedge::recovery
