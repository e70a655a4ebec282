// Connects the ranks of a group over TCP: they exchange the addresses at which they listen, and test them.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "comm/group.hpp"
#include "comm/sockets/mesh.hpp"
#include "kedge/communicator.hpp"
#include "kedge/error.hpp"

namespace kedge::comm {

/// A communicator or a failure, alike on every rank.
struct JoinResult {
  std::unique_ptr<Communicator> communicator;  ///< over the ranks of the group, connected
  std::optional<Failure> failure;              ///< why there is none
  std::string network;                         ///< the network in use; rank 0's, for messages
};

/// COLLECTIVE, over `group`. Takes at most a quarter of the group's timeout, beside what the group itself takes. Tries
/// the networks that `interfaces` names (see pipeline.interface), in that order. If it is empty: the loopback
/// interface, where all ranks can reach it, else those of rank 0. The communicator does not use the group afterwards.
/// Throws what ends communication.
[[nodiscard]] JoinResult join_over_sockets(const Group& group, const std::string& interfaces);

/// COLLECTIVE. Listens on `network` on each rank, and returns a plan with the addresses of all. Throws the same Error
/// on every rank if one cannot listen.
[[nodiscard]] MeshPlan plan_mesh(const Group& group, const std::string& network);

}  // namespace kedge::comm
