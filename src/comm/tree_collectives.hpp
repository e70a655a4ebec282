// Collective operations built from nothing but a Communicator's sends and receives: binomial trees over a rank
// list. The in-process communicator uses them for everything, the one over MPI for groups.
//
// Tree collectives unwind their buffers when a wait throws. So a communicator must move messages on channels from
// kUserChannels on through memory of its own, and never touch a span once its request is destroyed.
#pragma once

#include <cstdint>
#include <span>

#include "kedge/communicator.hpp"

namespace kedge::comm {

/// values[i] = reduction of values[i] and others[i]; both of one size.
void reduce_into(std::span<std::uint64_t> values, std::span<const std::uint64_t> others, Reduction reduction);

/// COLLECTIVE over `group` (empty: all ranks), as Communicator::all_reduce: up the tree to the group's first
/// rank and down again. Throws Error{invalid_argument} if this rank is not in the group.
void tree_all_reduce(Communicator& communicator, std::span<std::uint64_t> values, Reduction reduction,
                     Deadline deadline, std::span<const int> group = {});

/// COLLECTIVE over `group`, as Communicator::broadcast. Throws Error{invalid_argument} if this rank or `root`
/// is not in the group.
void tree_broadcast(Communicator& communicator, std::span<std::byte> bytes, int root, Deadline deadline,
                    std::span<const int> group = {});

/// COLLECTIVE over `group`, as Communicator::barrier.
void tree_barrier(Communicator& communicator, Deadline deadline, std::span<const int> group = {});

}  // namespace kedge::comm
