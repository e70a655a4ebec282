// Checks the space for all ranks of a node together, before any of them takes storage.
#pragma once

#include <cstdint>
#include <optional>

#include "comm/group.hpp"
#include "kedge/error.hpp"
#include "store/node_store.hpp"

namespace kedge::store {

/// COLLECTIVE. `additional_bytes` is this rank's need. Returns no_space, on all ranks alike, if on any node the ranks
/// under a limit need more than it leaves. Takes nothing.
[[nodiscard]] std::optional<Failure> check_space_on_nodes(const comm::Group& group, const NodeStore& store,
                                                          std::uint64_t additional_bytes);

}  // namespace kedge::store
