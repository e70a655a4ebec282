// Compares the heads of a commit's containers, because a wrong header can have a valid checksum.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "comm/group.hpp"
#include "kedge/types.hpp"

namespace kedge::recovery {

/// Correction of one container's head.
struct Contradiction {
  std::size_t index = 0;           ///< of the contradicted head
  std::optional<CommitHead> head;  ///< the majority's head; nothing if there is no majority
};

/// COLLECTIVE. `heads` are those of this process's containers. Returns, by ascending index, the ones that contradict
/// the majority of all processes' containers with the same commit id. Each commit id is counted by one process; no
/// process sees all heads.
[[nodiscard]] std::vector<Contradiction> find_contradictions(const comm::Group& group,
                                                             std::span<const CommitHead> heads);

}  // namespace kedge::recovery
