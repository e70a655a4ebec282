// Collective operations built from nothing but a Communicator's sends and receives: binomial trees over a rank
// list. The in-process communicator uses them for everything, the one over MPI for groups.
//
// Tree collectives unwind their buffers when a wait throws. So a communicator must move messages on channels from
// kFirstInternalChannel on through memory of its own, and never touch a span once its request is destroyed.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kedge/communicator.hpp"

namespace kedge::comm {

/// Sets values[i] to the reduction of values[i] and others[i]; both have one size.
void reduce_into(std::span<std::uint64_t> values, std::span<const std::uint64_t> others, Reduction reduction);

/// COLLECTIVE over `group` (empty: all ranks). Reduces up the tree to the group's first rank and broadcasts down again,
/// as Communicator::all_reduce. Throws Error{invalid_argument} if this rank is not in the group.
void tree_all_reduce(Communicator& communicator, std::span<std::uint64_t> values, Reduction reduction,
                     Deadline deadline, std::span<const int> group = {});

/// COLLECTIVE over `group`. Broadcasts as Communicator::broadcast does. Throws Error{invalid_argument} if this rank or
/// `root` is not in the group.
void tree_broadcast(Communicator& communicator, std::span<std::byte> bytes, int root, Deadline deadline,
                    std::span<const int> group = {});

/// COLLECTIVE over `group`. Waits as Communicator::barrier does.
void tree_barrier(Communicator& communicator, Deadline deadline, std::span<const int> group = {});

/// COLLECTIVE over all ranks. Exchanges as Communicator::sparse_exchange does. First each message is announced to its
/// receiver, in log2(ranks) rounds: in each, a rank passes on the announcements whose remaining distance has this
/// round's power of two, to the rank so far ahead (the routing of Bruck et al., "Efficient algorithms for all-to-all
/// communications in multiport message-passing systems", IEEE TPDS 8(11), 1997). Then each rank knows what to receive
/// from which rank. All messages go over one channel, where those of one sender stay in order, so that exchanges may
/// follow each other.
[[nodiscard]] std::vector<Communicator::Message> routed_sparse_exchange(Communicator& communicator,
                                                                        std::vector<Communicator::Message> messages,
                                                                        Deadline deadline);

}  // namespace kedge::comm
