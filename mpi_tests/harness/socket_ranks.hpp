// Ranks that reach each other over TCP on the loopback interface, in one process.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/attempt.hpp"
#include "base/random.hpp"
#include "comm/sockets/mesh.hpp"
#include "comm/sockets/socket_transport.hpp"

namespace kedge::testing {

/// What each rank must know; all listen already.
inline std::vector<comm::MeshPlan> socket_plans(int ranks) {
  std::vector<comm::NetworkAddress> addresses;
  std::vector<comm::MeshPlan> plans(static_cast<std::size_t>(ranks));
  const Id128 token = random_id();
  const Id128 welcome = random_id();
  for (auto& plan : plans) {
    plan.listener = comm::listen_at({{127, 0, 0, 1}, 0});
    addresses.push_back(comm::listening_address(plan.listener));
  }
  for (int rank = 0; rank < ranks; ++rank) {
    auto& plan = plans[static_cast<std::size_t>(rank)];
    plan.rank = rank;
    plan.addresses = addresses;
    plan.token = token;
    plan.welcome_token = welcome;
  }
  return plans;
}

/// Runs the body in a thread of each rank; what each threw.
inline std::vector<std::optional<Failure>> run_socket_ranks(
    std::vector<comm::MeshPlan> plans, const std::function<void(comm::SocketTransport& transport)>& body) {
  std::vector<std::optional<Failure>> failures(plans.size());
  std::vector<std::jthread> threads;
  for (std::size_t rank = 0; rank < plans.size(); ++rank) {
    threads.emplace_back([&failures, &body, rank, plan = std::move(plans[rank])]() mutable {
      failures[rank] = attempt([&] {
        comm::SocketTransport transport(std::move(plan));
        body(transport);
      });
    });
  }
  threads.clear();
  return failures;
}

}  // namespace kedge::testing
