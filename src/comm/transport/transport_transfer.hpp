// One send or receive over a Transport.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "kedge/communicator.hpp"
#include "kedge/transport.hpp"

namespace kedge::comm {

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

}  // namespace kedge::comm
