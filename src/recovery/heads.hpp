// Compares what the containers of one commit say about it: a header can be wrong and have a valid checksum.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "comm/group.hpp"
#include "kedge/types.hpp"

namespace kedge::recovery {

/// Replacement for what one container says.
struct Contradiction {
  std::size_t index = 0;           ///< of the head that is contradicted
  std::optional<CommitHead> head;  ///< what most containers of the commit say; nothing if as many say something else
};

/// COLLECTIVE. `heads` are those of this process's containers. Returns those that contradict what most containers of
/// all processes say about the same commit id, by ascending index. Each commit id is counted by one process; no process
/// sees all heads.
[[nodiscard]] std::vector<Contradiction> find_contradictions(const comm::Group& group,
                                                             std::span<const CommitHead> heads);

}  // namespace kedge::recovery
