#include "comm/transport/transport_communicator.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "base/keep_forever.hpp"
#include "base/text.hpp"
#include "comm/channels.hpp"
#include "comm/tree_collectives.hpp"
#include "kedge/error.hpp"

namespace kedge::comm {
namespace {

static_assert(kChannelLimit <= 4096, "transports promise tags up to 4095");

constexpr std::size_t kHeadBytes = sizeof(std::uint64_t);

/// A transport does not say how large a message was that arrived, so each begins with its size. Small ones follow it in
/// the same message, through memory of their own; large ones go straight to and from the caller's memory, unless the
/// channel is one of collective operations (see tree_collectives.hpp).
class TransportTransfer final : public Communicator::Operation {
 public:
  /// Largest message that is sent together with its size.
  static constexpr std::size_t kSmallBytes = 64 * 1024;

  TransportTransfer(Transport& transport, int to, int channel, std::span<const std::byte> bytes);  ///< a send
  TransportTransfer(Transport& transport, int from, int channel, std::span<std::byte> bytes);      ///< a receive
  ~TransportTransfer() override;

  [[nodiscard]] int peer() const noexcept { return peer_; }
  /// Local. True if complete. Throws Error{bad_state} if a message of another size came, Error{rank_failed}.
  [[nodiscard]] bool test();
  /// Local. Waits until it is complete; false if the deadline passed.
  [[nodiscard]] bool wait(Deadline deadline);

 private:
  /// Memory that the transport works on, on the heap: it outlives a transfer that is given up.
  struct Memory {
    std::vector<std::byte> head;  // the size, and what is small
    std::vector<std::byte> body;  // of large messages on internal channels
  };

  /// Nothing started: those above go on from here, so that what they started is left alone if they throw.
  TransportTransfer(int peer, std::span<std::byte> target, bool receives)
      : peer_(peer), target_(target), receives_(receives) {}

  template <class Done>
  [[nodiscard]] bool complete(Done&& done);
  void check_size() const;

  int peer_;
  std::span<std::byte> target_;  // of a receive
  bool receives_;
  std::unique_ptr<Memory> memory_ = std::make_unique<Memory>();
  std::array<std::unique_ptr<Transport::Transfer>, 2> parts_;  // null: complete, or not needed
};

bool fits_in_head(std::size_t size) { return size <= TransportTransfer::kSmallBytes; }

TransportTransfer::TransportTransfer(Transport& transport, int to, int channel, std::span<const std::byte> bytes)
    : TransportTransfer(to, std::span<std::byte>(), false) {
  const std::uint64_t size = bytes.size();
  memory_->head.resize(kHeadBytes + (fits_in_head(bytes.size()) ? bytes.size() : 0));
  std::memcpy(memory_->head.data(), &size, kHeadBytes);
  if (fits_in_head(bytes.size())) std::ranges::copy(bytes, memory_->head.begin() + kHeadBytes);
  parts_[0] = transport.send(to, channel, memory_->head);
  if (fits_in_head(bytes.size())) return;
  if (channel >= kFirstInternalChannel) {
    memory_->body.assign(bytes.begin(), bytes.end());
    bytes = memory_->body;
  }
  parts_[1] = transport.send(to, channel, bytes);
}

TransportTransfer::TransportTransfer(Transport& transport, int from, int channel, std::span<std::byte> bytes)
    : TransportTransfer(from, bytes, true) {
  memory_->head.resize(kHeadBytes + (fits_in_head(bytes.size()) ? bytes.size() : 0));
  parts_[0] = transport.receive(from, channel, memory_->head);
  if (fits_in_head(bytes.size())) return;
  if (channel >= kFirstInternalChannel) {
    memory_->body.resize(bytes.size());
    bytes = memory_->body;
  }
  parts_[1] = transport.receive(from, channel, bytes);
}

TransportTransfer::~TransportTransfer() {
  if (parts_[0] != nullptr || parts_[1] != nullptr) keep_forever(std::shared_ptr<Memory>(std::move(memory_)));
}

bool TransportTransfer::test() {
  return complete([](Transport::Transfer& part) { return part.test(); });
}

bool TransportTransfer::wait(Deadline deadline) {
  return complete([&](Transport::Transfer& part) { return part.wait(deadline); });
}

template <class Done>
bool TransportTransfer::complete(Done&& done) {
  if (parts_[0] != nullptr) {
    if (!done(*parts_[0])) return false;
    parts_[0].reset();
    if (receives_) check_size();
    if (receives_ && fits_in_head(target_.size())) {
      std::copy(memory_->head.begin() + kHeadBytes, memory_->head.end(), target_.begin());
    }
  }
  if (parts_[1] != nullptr) {
    if (!done(*parts_[1])) return false;
    parts_[1].reset();
    if (receives_ && !memory_->body.empty()) std::ranges::copy(memory_->body, target_.begin());
  }
  return true;
}

void TransportTransfer::check_size() const {
  std::uint64_t size = 0;
  std::memcpy(&size, memory_->head.data(), kHeadBytes);
  if (size == target_.size()) return;
  throw Error(ErrorCode::bad_state,
              compose("expected {} bytes from rank {} and got {}; send and receive sizes must match", target_.size(),
                      peer_, size));
}

}  // namespace

void SelfMessages::send(int channel, std::span<const std::byte> bytes) {
  Lane& lane = lanes_[channel];
  lane.unreceived.try_emplace(lane.sent++, bytes.begin(), bytes.end());
}

Communicator::Request SelfMessages::receive(int channel, std::span<std::byte> bytes) {
  return std::make_unique<SelfReceive>(*this, channel, lanes_[channel].received++, bytes);
}

bool SelfReceive::test() {
  auto& waiting = messages_.lanes_[channel_].unreceived;
  const auto found = waiting.find(number_);
  if (found == waiting.end()) return false;
  const auto message = std::move(found->second);
  waiting.erase(found);
  if (message.size() != target_.size()) {
    throw Error(ErrorCode::bad_state, compose("expected {} bytes from this rank itself and got {}; send and receive "
                                              "sizes must match",
                                              target_.size(), message.size()));
  }
  std::ranges::copy(message, target_.begin());
  return true;
}

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
    require_peer_and_channel(to, channel);
    if (to != rank()) return std::make_unique<TransportTransfer>(*transport_, to, channel, bytes);
    self_messages_.send(channel, bytes);
    return nullptr;
  });
}

Communicator::Request TransportCommunicator::receive(int from, int channel, std::span<std::byte> bytes) {
  return communicate([&]() -> Request {
    require_peer_and_channel(from, channel);
    if (from == rank()) return self_messages_.receive(channel, bytes);
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
        if (!transfer->wait(deadline)) throw_timeout(compose("rank {}", transfer->peer()), deadline);
      } else {
        wait_for_self_message(static_cast<SelfReceive&>(*request), deadline);
      }
      request.reset();
    }
  });
}

/// Only another thread can send it.
void TransportCommunicator::wait_for_self_message(SelfReceive& receive, Deadline deadline) {
  WaitTimer wait_timer(deadline);
  while (!receive.test()) {
    require_usable();
    if (wait_timer.is_over()) throw_timeout(compose("rank {}", rank()), deadline);
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
