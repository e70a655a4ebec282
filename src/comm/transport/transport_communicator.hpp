// The communicator over a Transport.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "comm/checked_communicator.hpp"
#include "kedge/communicator.hpp"
#include "kedge/transport.hpp"

namespace kedge::comm {

/// Messages of a rank to itself. In each channel, the nth message is for the nth receive.
class SelfMessages {
 public:
  void send(int channel, std::span<const std::byte> bytes);
  /// Receives a message. The request refers to this object, which must outlive it.
  [[nodiscard]] Communicator::Request receive(int channel, std::span<std::byte> bytes);

 private:
  friend class SelfReceive;

  struct Lane {
    std::uint64_t sent = 0;
    std::uint64_t received = 0;
    std::map<std::uint64_t, std::vector<std::byte>> unreceived;  // by number
  };
  std::map<int, Lane> lanes_;
};

class SelfReceive final : public Communicator::Operation {
 public:
  SelfReceive(SelfMessages& messages, int channel, std::uint64_t number, std::span<std::byte> bytes)
      : messages_(messages), channel_(channel), number_(number), target_(bytes) {}

  /// Local. True if complete. Throws Error{bad_state} if a message of another size came.
  [[nodiscard]] bool test();

 private:
  SelfMessages& messages_;
  int channel_;
  std::uint64_t number_;
  std::span<std::byte> target_;
};

/// Its collective operations are trees of sends and receives. Messages of a rank to itself never reach the transport,
/// so a job of one process needs none.
class TransportCommunicator final : public CheckedCommunicator {
 public:
  /// `transport` is null in a job of one process.
  TransportCommunicator(std::unique_ptr<Transport> transport, int rank, int size);

  void connect(Deadline deadline) override;
  [[nodiscard]] std::unique_ptr<Communicator> duplicate(Deadline deadline) override;
  [[nodiscard]] std::string name() const override { return {}; }
  [[nodiscard]] std::string library() const override { return library_; }
  /// Transports do not promise that two of their channels may be used at once.
  [[nodiscard]] ThreadSupport thread_support() const noexcept override {
    return transport_ == nullptr ? ThreadSupport::multiple : ThreadSupport::serialized;
  }
  [[nodiscard]] Request send(int to, int channel, std::span<const std::byte> bytes) override;
  [[nodiscard]] Request receive(int from, int channel, std::span<std::byte> bytes) override;
  [[nodiscard]] bool test(Request& request) override;
  void wait(std::span<Request> requests, Deadline deadline) override;
  void all_reduce(std::span<std::uint64_t> values, Reduction reduction, Deadline deadline,
                  std::span<const int> group) override;
  void broadcast(std::span<std::byte> bytes, int root, Deadline deadline, std::span<const int> group) override;
  void barrier(Deadline deadline, std::span<const int> group) override;
  [[nodiscard]] std::vector<Message> sparse_exchange(std::vector<Message> messages, Deadline deadline) override;
  void interrupt() noexcept override {
    set_interrupted();
    if (transport_ != nullptr) transport_->interrupt();
  }
  void leave(std::string_view why) noexcept override;

 private:
  template <class Body>
  auto communicate(Body&& body);
  void wait_for_self_message(SelfReceive& receive, Deadline deadline);

  std::unique_ptr<Transport> transport_;
  std::string library_;
  SelfMessages self_messages_;
};

}  // namespace kedge::comm
