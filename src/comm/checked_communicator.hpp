// Checks that the communicators of all message layers make before they communicate.
#pragma once

#include <atomic>
#include <string_view>

#include "kedge/communicator.hpp"
#include "kedge/error.hpp"

namespace kedge::comm {

/// Returns the error of a wait for other ranks that timed out. It does not blame others if this rank was stopped
/// itself: they may have timed out first.
[[nodiscard]] Error timeout_error(int rank, std::string_view whom, Deadline deadline);

/// A communicator that knows its ranks, and whether it can be used: from connect() until a wait timed out,
/// communication failed, or this rank left.
class CheckedCommunicator : public Communicator {
 public:
  [[nodiscard]] int rank() const noexcept final { return rank_; }
  [[nodiscard]] int size() const noexcept final { return size_; }

 protected:
  CheckedCommunicator(int rank, int size) : rank_(rank), size_(size) {}

  void set_connected() noexcept { connected_ = true; }
  void set_ended() noexcept { has_ended_ = true; }
  [[nodiscard]] bool has_ended() const noexcept { return has_ended_; }
  void set_interrupted() noexcept { interrupted_ = true; }

  void require_unconnected() const;  ///< Throws Error{bad_state} if it is connected.
  /// Throws Error{timeout} after an interrupt, else Error{bad_state} if it cannot be used.
  void require_usable() const;
  void require_peer(int peer) const;  ///< Throws Error{invalid_argument} if there is no such rank.
  void require_peer_and_channel(int peer,
                                int channel) const;  ///< Throws Error{invalid_argument}: no such rank or channel.
  /// Ends the communicator and throws Error{timeout}.
  [[noreturn]] void throw_timeout(std::string_view whom, Deadline deadline);

 private:
  int rank_;
  int size_;
  bool connected_ = false;
  std::atomic<bool> has_ended_ = false;
  std::atomic<bool> interrupted_ = false;
};

}  // namespace kedge::comm
