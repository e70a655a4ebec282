// How the ranks of a group come to messages over TCP: they tell each other where they listen, and prove that it works.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "comm/group.hpp"
#include "comm/sockets/mesh.hpp"
#include "kedge/communicator.hpp"
#include "kedge/error.hpp"

namespace kedge::comm {

/// A communicator or a failure, the same on every rank.
struct JoinResult {
  std::unique_ptr<Communicator> communicator;  ///< over the ranks of the group, connected
  std::optional<Failure> failure;              ///< why there is none
  std::string network;                         ///< which one they met on; of rank 0, for messages
};

/// COLLECTIVE, over `group`; takes a quarter of its timeout at most, beside what the group itself takes. Tries the
/// networks that `interfaces` names (see pipeline.interface), in that order. If it is empty: the loopback interface,
/// where all ranks can reach it, else those of rank 0. The communicator needs nothing of the group afterwards. Throws
/// what ends communication.
[[nodiscard]] JoinResult join_over_sockets(const Group& group, const std::string& interfaces);

/// COLLECTIVE. A plan with the addresses of all ranks, once each listens at an address of its own on `network`. Throws
/// the same Error on every rank if one cannot.
[[nodiscard]] MeshPlan plan_mesh(const Group& group, const std::string& network);

}  // namespace kedge::comm
