#include "comm/sockets/join.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>
#include <vector>

#include "base/attempt.hpp"
#include "base/network.hpp"
#include "base/random.hpp"
#include "base/text.hpp"
#include "comm/sockets/network_address.hpp"
#include "comm/sockets/socket_transport.hpp"

namespace kedge::comm {
namespace {

constexpr std::size_t kNetworksMax = 4;
constexpr double kShareOfTimeout = 0.25;
constexpr double kProofMaxS = 20;
constexpr int kProofTag = 0;

/// COLLECTIVE. Which networks are tried, the same on all ranks; none if rank 0 has none.
Networks networks_to_try(const Group& group, const std::string& wanted) {
  if (!wanted.empty()) return parse_networks(wanted).value_or(Networks());
  if (!group.first_difference(std::array{loopback_id()})) return {"127.0.0.0/8", "::1/128"};
  const auto words = group.decide_on_root([] {
    std::string all;
    for (const std::string& network : networks_of(list_interfaces())) all += (all.empty() ? "" : ",") + network;
    return all;
  });
  Networks networks;
  for (std::size_t begin = 0; begin < words.size();) {
    const std::size_t end = std::min(words.find(',', begin), words.size());
    networks.push_back(words.substr(begin, end - begin));
    begin = end + 1;
  }
  return networks;
}

NetworkAddress own_address_on(const std::string& network) {
  const auto address = find_address_on(list_interfaces(), network);
  if (address) return *address;
  throw Error(ErrorCode::not_found, compose("this host has no address on {}", network));
}

/// Each rank sends to the next one, so that each is connected to and connects; then all meet, as they will later.
void check_connections(Transport& transport, Communicator& communicator, Deadline deadline) {
  const int size = transport.size();
  const int rank = transport.rank();
  std::array<std::byte, 1> sent{std::byte{1}};
  std::array<std::byte, 1> received{};
  const auto out = transport.send((rank + 1) % size, kProofTag, sent);
  const auto in = transport.receive((rank + size - 1) % size, kProofTag, received);
  const auto await = [&](Transport::Transfer& transfer, int other) {
    if (!transfer.wait(deadline)) {
      throw Error(ErrorCode::timeout, compose("ranks {} and {} could not connect in time", rank, other));
    }
  };
  await(*out, (rank + 1) % size);
  await(*in, (rank + size - 1) % size);
  communicator.connect(deadline);
}

/// COLLECTIVE. Nothing if it works. Ranks stay until all know: one that goes would be the others' failure. What a rank
/// found comes before what others waited for.
std::optional<Failure> try_mesh(const Group& group, MeshPlan plan, Deadline deadline, JoinResult& joined) {
  std::shared_ptr<Mesh> mesh;
  const auto local = attempt([&] {
    mesh = std::make_shared<Mesh>(std::move(plan));
    SocketTransport first(mesh, 0);
    joined.communicator = make_communicator(std::make_unique<SocketTransport>(mesh, 0));
    check_connections(first, *joined.communicator, deadline);
  });
  auto failure = group.vote(local && local->code != ErrorCode::timeout ? local : std::nullopt);
  if (!failure) failure = group.vote(local);
  if (failure) joined.communicator.reset();
  return failure;
}

}  // namespace

MeshPlan plan_mesh(const Group& group, const std::string& network) {
  MeshPlan plan;
  plan.rank = group.rank();
  NetworkAddress own;
  group.run_on_all_ranks([&] {
    plan.listener = listen_at(own_address_on(network));
    own = listening_address(plan.listener);
  });
  std::vector<std::uint64_t> packed(static_cast<std::size_t>(group.size()) * PackedAddress().size());
  std::ranges::copy(pack_address(own),
                    packed.begin() + group.rank() * static_cast<std::ptrdiff_t>(PackedAddress().size()));
  group.communicator().all_reduce(packed, Reduction::bit_or, group.deadline());
  group.run_on_all_ranks([&] {
    for (std::size_t at = 0; at < packed.size(); at += PackedAddress().size()) {
      const auto address = unpack_address(std::span(packed).subspan(at).first<PackedAddress().size()>());
      if (!address) throw Error(ErrorCode::io, "a rank's address was not received; start the job again");
      plan.addresses.push_back(*address);
    }
  });
  std::array<Id128, 2> tokens;
  group.run_on_all_ranks([&] {
    if (group.is_root()) tokens = {random_id(), random_id()};
  });
  group.broadcast(tokens);
  plan.token = tokens[0];
  plan.welcome_token = tokens[1];
  return plan;
}

JoinResult join_over_sockets(const Group& group, const std::string& interfaces) {
  Networks networks = networks_to_try(group, interfaces);
  if (networks.size() > kNetworksMax) networks.resize(kNetworksMax);
  JoinResult joined;
  std::string why;
  for (const std::string& network : networks) {
    const double all_s = std::min(kProofMaxS, group.timeout().count() * kShareOfTimeout);
    const std::chrono::duration<double> each(all_s / static_cast<double>(networks.size()));
    std::optional<Failure> failure;
    try {
      MeshPlan plan = plan_mesh(group, network);
      failure = try_mesh(group, std::move(plan), Deadline::after(each), joined);
    } catch (const Error& error) {
      if (ends_communication(error.code())) throw;
      failure = error.failure();  // the failure is the same on all ranks
    }
    joined.network = network;
    if (!failure) return joined;
    why += compose("{}{}: rank {}: {}", why.empty() ? "" : "; ", network, failure->rank, failure->message);
  }
  if (why.empty()) why = "rank 0 has no network interface that is up, other than loopback";
  joined.failure = Failure{ErrorCode::io, std::move(why)};
  return joined;
}

}  // namespace kedge::comm
