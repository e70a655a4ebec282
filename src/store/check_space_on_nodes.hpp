// Admission of all ranks of a node: their needs are added up before any of them takes storage.
#pragma once

#include <cstdint>
#include <optional>

#include "comm/group.hpp"
#include "kedge/error.hpp"
#include "store/node_store.hpp"

namespace kedge::store {

/// COLLECTIVE. `additional_bytes` is what this rank is about to take. no_space, the same on all ranks, if on any node
/// the ranks that a limit is for need more than it leaves; nothing is taken either way.
[[nodiscard]] std::optional<Failure> check_space_on_nodes(const comm::Group& group, const NodeStore& store,
                                                          std::uint64_t additional_bytes);

}  // namespace kedge::store
