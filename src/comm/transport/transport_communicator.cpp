#include "comm/transport/transport_communicator.hpp"

#include <chrono>
#include <thread>
#include <utility>

#include "base/text.hpp"
#include "comm/channels.hpp"
#include "comm/sparse_exchange.hpp"
#include "comm/transport/transport_transfer.hpp"
#include "comm/tree_collectives.hpp"
#include "kedge/error.hpp"

namespace kedge::comm {

static_assert(kChannelLimit <= 4096, "transports promise tags up to 4095");

TransportCommunicator::TransportCommunicator(std::unique_ptr<Transport> transport, int rank, int size)
    : CheckedCommunicator(rank, size),
      transport_(std::move(transport)),
      library_(transport_ == nullptr ? "a single process" : transport_->library()) {}

template <class Body>
auto TransportCommunicator::communicate(Body&& body) {
  require_usable();
  try {
    return body();
  } catch (const Error& error) {
    if (error.code() == ErrorCode::rank_failed) set_ended();
    throw;
  }
}

void TransportCommunicator::connect(Deadline deadline) {
  require_unconnected();
  if (transport_ != nullptr) transport_ = transport_->open_channel(deadline);
  set_connected();
  barrier(deadline, {});
}

std::unique_ptr<Communicator> TransportCommunicator::duplicate(Deadline deadline) {
  return communicate([&] {
    auto channel = transport_ == nullptr ? nullptr : transport_->open_channel(deadline);
    auto copy = std::make_unique<TransportCommunicator>(std::move(channel), rank(), size());
    copy->set_connected();
    copy->barrier(deadline, {});
    return std::unique_ptr<Communicator>(std::move(copy));
  });
}

Communicator::Request TransportCommunicator::send(int to, int channel, std::span<const std::byte> bytes) {
  return communicate([&]() -> Request {
    require(to, channel);
    if (to != rank()) return std::make_unique<TransportTransfer>(*transport_, to, channel, bytes);
    to_itself_.send(channel, bytes);
    return nullptr;
  });
}

Communicator::Request TransportCommunicator::receive(int from, int channel, std::span<std::byte> bytes) {
  return communicate([&]() -> Request {
    require(from, channel);
    if (from == rank()) return to_itself_.receive(channel, bytes);
    return std::make_unique<TransportTransfer>(*transport_, from, channel, bytes);
  });
}

bool TransportCommunicator::test(Request& request) {
  return communicate([&] {
    if (request == nullptr) return true;
    auto* transfer = dynamic_cast<TransportTransfer*>(request.get());
    const bool done = transfer != nullptr ? transfer->test() : static_cast<SelfReceive&>(*request).test();
    if (done) request.reset();
    return done;
  });
}

void TransportCommunicator::wait(std::span<Request> requests, Deadline deadline) {
  communicate([&] {
    for (auto& request : requests) {
      if (request == nullptr) continue;
      if (auto* transfer = dynamic_cast<TransportTransfer*>(request.get())) {
        if (!transfer->wait(deadline)) time_out(compose("rank {}", transfer->peer()), deadline);
      } else {
        wait_for_itself(static_cast<SelfReceive&>(*request), deadline);
      }
      request.reset();
    }
  });
}

/// Only another thread can send it.
void TransportCommunicator::wait_for_itself(SelfReceive& receive, Deadline deadline) {
  WaitTimer wait_timer(deadline);
  while (!receive.test()) {
    require_usable();
    if (wait_timer.is_over()) time_out(compose("rank {}", rank()), deadline);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

void TransportCommunicator::all_reduce(std::span<std::uint64_t> values, Reduction reduction, Deadline deadline,
                                       std::span<const int> group) {
  tree_all_reduce(*this, values, reduction, deadline, group);
}

void TransportCommunicator::broadcast(std::span<std::byte> bytes, int root, Deadline deadline,
                                      std::span<const int> group) {
  require_peer(root);
  tree_broadcast(*this, bytes, root, deadline, group);
}

void TransportCommunicator::barrier(Deadline deadline, std::span<const int> group) {
  tree_barrier(*this, deadline, group);
}

std::vector<Communicator::Message> TransportCommunicator::sparse_exchange(std::vector<Message> messages,
                                                                          Deadline deadline) {
  for (const auto& message : messages) require_peer(message.peer);
  return routed_sparse_exchange(*this, std::move(messages), deadline);
}

void TransportCommunicator::leave(std::string_view why) noexcept {
  set_ended();
  if (transport_ != nullptr) transport_->leave(why);
}

}  // namespace kedge::comm

namespace kedge {

std::unique_ptr<Communicator> make_communicator(std::unique_ptr<Transport> transport) {
  const int rank = transport->rank();
  const int size = transport->size();
  return std::make_unique<comm::TransportCommunicator>(std::move(transport), rank, size);
}

std::unique_ptr<Communicator> single_process() { return std::make_unique<comm::TransportCommunicator>(nullptr, 0, 1); }

}  // namespace kedge
