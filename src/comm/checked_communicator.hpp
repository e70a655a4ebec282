// What the communicators of all message layers check before they communicate.
#pragma once

#include <atomic>
#include <string_view>

#include "kedge/communicator.hpp"
#include "kedge/error.hpp"

namespace kedge::comm {

/// The error of a wait for other ranks that did not come. A rank that was stopped itself does not blame others, which
/// may have given up on it.
[[nodiscard]] Error timeout_error(int rank, std::string_view whom, Deadline deadline);

/// Knows its ranks, and whether it can be used: from connect() until a wait timed out, communication failed, or this
/// rank left.
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

  void require_unconnected() const;           ///< Throws Error{bad_state}.
  void require_usable() const;                ///< Throws Error{timeout} after an interrupt, Error{bad_state}.
  void require_peer(int peer) const;          ///< Throws Error{invalid_argument} if there is no such rank.
  void require(int peer, int channel) const;  ///< Throws Error{invalid_argument}: no such rank or channel.
  [[noreturn]] void time_out(std::string_view whom, Deadline deadline);  ///< Ends it. Throws Error{timeout}.

 private:
  int rank_;
  int size_;
  bool connected_ = false;
  std::atomic<bool> has_ended_ = false;
  std::atomic<bool> interrupted_ = false;
};

}  // namespace kedge::comm
