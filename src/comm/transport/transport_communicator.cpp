#include "comm/transport/transport_communicator.hpp"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "base/text.hpp"
#include "comm/channels.hpp"
#include "comm/timeout_error.hpp"
#include "comm/transport/transport_transfer.hpp"
#include "comm/tree_collectives.hpp"
#include "kedge/error.hpp"

namespace kedge::comm {

static_assert(kChannelLimit <= 4096, "transports promise tags up to 4095");

TransportCommunicator::TransportCommunicator(std::unique_ptr<Transport> transport, int rank, int size)
    : transport_(std::move(transport)),
      library_(transport_ == nullptr ? "a single process" : transport_->library()),
      rank_(rank),
      size_(size) {}

template <class Body>
auto TransportCommunicator::communicate(Body&& body) {
  check_usable();
  try {
    return body();
  } catch (const Error& error) {
    has_ended_ = has_ended_ || error.code() == ErrorCode::rank_failed;
    throw;
  }
}

void TransportCommunicator::connect(Deadline deadline) {
  if (connected_) throw Error(ErrorCode::bad_state, "this communicator is already connected; connect it only once");
  if (transport_ != nullptr) transport_ = transport_->open_channel(deadline);
  connected_ = true;
  barrier(deadline, {});
}

std::unique_ptr<Communicator> TransportCommunicator::duplicate(Deadline deadline) {
  return communicate([&] {
    auto channel = transport_ == nullptr ? nullptr : transport_->open_channel(deadline);
    auto copy = std::make_unique<TransportCommunicator>(std::move(channel), rank_, size_);
    copy->connected_ = true;
    copy->barrier(deadline, {});
    return std::unique_ptr<Communicator>(std::move(copy));
  });
}

Communicator::Request TransportCommunicator::send(int to, int channel, std::span<const std::byte> bytes) {
  return communicate([&]() -> Request {
    check(to, channel);
    if (to != rank_) return std::make_unique<TransportTransfer>(*transport_, to, channel, bytes);
    to_itself_.send(channel, bytes);
    return nullptr;
  });
}

Communicator::Request TransportCommunicator::receive(int from, int channel, std::span<std::byte> bytes) {
  return communicate([&]() -> Request {
    check(from, channel);
    if (from == rank_) return to_itself_.receive(channel, bytes);
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
  WaitTimer patience(deadline);
  while (!receive.test()) {
    check_usable();
    if (patience.is_over()) time_out(compose("rank {}", rank_), deadline);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

void TransportCommunicator::all_reduce(std::span<std::uint64_t> values, Reduction reduction, Deadline deadline,
                                       std::span<const int> group) {
  tree_all_reduce(*this, values, reduction, deadline, group);
}

void TransportCommunicator::broadcast(std::span<std::byte> bytes, int root, Deadline deadline,
                                      std::span<const int> group) {
  check_peer(root);
  tree_broadcast(*this, bytes, root, deadline, group);
}

void TransportCommunicator::barrier(Deadline deadline, std::span<const int> group) {
  tree_barrier(*this, deadline, group);
}

/// Every rank learns how many messages to expect, and takes that many from whoever sends.
std::vector<Communicator::Message> TransportCommunicator::sparse_exchange(std::vector<Message> messages,
                                                                          Deadline deadline) {
  std::vector<std::uint64_t> expected(static_cast<std::size_t>(size_));
  for (const auto& message : messages) {
    check_peer(message.peer);
    if (message.peer != rank_) ++expected[static_cast<std::size_t>(message.peer)];
  }
  all_reduce(expected, Reduction::sum, deadline, {});
  odd_exchange_ = !odd_exchange_;  // ranks that have what they expect may begin the next one
  const int channel = odd_exchange_ ? kExchangeChannelOdd : kExchangeChannel;
  std::vector<Message> received;
  std::vector<Request> sends;
  for (auto& message : messages) {
    if (message.peer == rank_) received.push_back(std::move(message));
    else sends.push_back(send(message.peer, channel, message.bytes));
  }
  communicate([&] {
    for (auto left = expected[static_cast<std::size_t>(rank_)]; left > 0; --left) {
      auto message = receive_from_any(*transport_, channel, deadline);
      if (!message) time_out("at least one other rank (in a sparse exchange)", deadline);
      received.push_back(std::move(*message));
    }
  });
  wait(sends, deadline);
  std::ranges::stable_sort(received, {}, &Message::peer);
  return received;
}

void TransportCommunicator::leave(std::string_view why) noexcept {
  has_ended_ = true;
  if (transport_ != nullptr) transport_->leave(why);
}

void TransportCommunicator::check_usable() const {
  if (interrupted_) throw Error(ErrorCode::timeout, "this communicator was interrupted");
  if (has_ended_) {
    throw Error(ErrorCode::bad_state, "this communicator timed out or failed, and cannot be used again");
  }
  if (!connected_) throw Error(ErrorCode::bad_state, "connect this communicator before using it");
}

void TransportCommunicator::check_peer(int peer) const {
  if (peer >= 0 && peer < size_) return;
  throw Error(ErrorCode::invalid_argument, compose("there is no rank {}; ranks are 0 to {}", peer, size_ - 1));
}

void TransportCommunicator::check(int peer, int channel) const {
  check_peer(peer);
  if (channel >= 0 && channel < kChannelLimit) return;
  throw Error(ErrorCode::invalid_argument,
              compose("there is no channel {}; channels are 0 to {}", channel, kUserChannels - 1));
}

void TransportCommunicator::time_out(const std::string& whom, Deadline deadline) {
  has_ended_ = true;
  throw timeout_error(rank_, whom, deadline);
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
