// Kedge over other message layers: the interface that one must implement (Transport), and the communicator that Kedge
// builds on it. Also the communicator of a single process.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "kedge/communicator.hpp"

namespace kedge {

/// Messages between the processes of a job, for message layers other than MPI. Called by one thread at a time. Failed
/// communication throws Error{rank_failed}; the transport is not used afterwards.
class Transport {
 public:
  /// A message in progress. Destroying an incomplete one must not touch its memory, which stays valid.
  class Transfer {
   public:
    Transfer() = default;
    Transfer(const Transfer&) = delete;
    Transfer& operator=(const Transfer&) = delete;
    virtual ~Transfer() = default;
    [[nodiscard]] virtual bool test() = 0;  ///< Local. Whether it is complete; never waits.
    /// Local. False if the deadline passed first. Use a WaitTimer in the waiting loop, so that suspended jobs continue.
    [[nodiscard]] virtual bool wait(Deadline deadline) = 0;
  };

  Transport() = default;
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;
  virtual ~Transport() = default;

  [[nodiscard]] virtual int rank() const noexcept = 0;    ///< Rank of this process, from 0.
  [[nodiscard]] virtual int size() const noexcept = 0;    ///< How many ranks there are.
  [[nodiscard]] virtual std::string library() const = 0;  ///< The message layer's name and version, for messages.

  /// COLLECTIVE. A transport over the same ranks with separate messages. Communicator::connect and duplicate call it.
  [[nodiscard]] virtual std::unique_ptr<Transport> open_channel(Deadline deadline) = 0;

  /// Local. Starts a send or receive, never to this rank itself. Messages from one sender with one `tag` (0 to 4095)
  /// arrive in order. A receive takes a message of at most `bytes` and fails for a larger one. The memory must stay
  /// valid and unchanged until the transfer is complete.
  [[nodiscard]] virtual std::unique_ptr<Transfer> send(int to, int tag, std::span<const std::byte> bytes) = 0;
  /// Local: starts a receive, never from this rank itself, of a message of at most `bytes`; one that is larger fails.
  /// The memory stays valid and untouched until the transfer is complete.
  [[nodiscard]] virtual std::unique_ptr<Transfer> receive(int from, int tag, std::span<std::byte> bytes) = 0;

  /// Local, from any thread. Ends current and later waits with Error{timeout}, if the message layer can.
  /// Communicator::interrupt() calls it.
  virtual void interrupt() noexcept {}
  /// Local. This rank takes no further part: ends the other ranks' current and later waits with Error{rank_failed} and
  /// the text `why`, or another that names this rank, if the message layer can. Communicator::leave() calls it.
  virtual void leave(std::string_view /*why*/) noexcept {}
};

/// Local. A communicator over a transport's ranks; its collective operations send messages along trees.
[[nodiscard]] std::unique_ptr<Communicator> make_communicator(std::unique_ptr<Transport> transport);

/// Local. The communicator of a job with one process, without a message layer.
[[nodiscard]] std::unique_ptr<Communicator> single_process();

}  // namespace kedge
