// A sparse exchange made of a communicator's sends and receives.
#pragma once

#include <vector>

#include "kedge/communicator.hpp"

namespace kedge::comm {

/// COLLECTIVE over all ranks, as Communicator::sparse_exchange. First each message is announced to its receiver, in
/// log2(ranks) rounds: in each, a rank passes the announcements that have the power of two of this round left of their
/// way on to the rank so far ahead (the routing of Bruck et al., "Efficient algorithms for all-to-all communications in
/// multiport message-passing systems", IEEE TPDS 8(11), 1997). Then each rank knows what to receive from whom. All
/// messages go over one channel, where those of one sender stay in order, so that exchanges may follow each other.
[[nodiscard]] std::vector<Communicator::Message> routed_sparse_exchange(Communicator& communicator,
                                                                        std::vector<Communicator::Message> messages,
                                                                        Deadline deadline);

}  // namespace kedge::comm
