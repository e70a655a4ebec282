// Kedge over any message layer: what it must offer (Transport), and the communicator that Kedge makes of it. Also the
// communicator of a job of one process.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "kedge/communicator.hpp"

namespace kedge {

/// Messages between the processes of a job, and nothing more: for message layers other than MPI, which kedge::mpi
/// serves. Called by one thread at a time. Failed communication throws Error{rank_failed}, after which the
/// transport is not used again.
class Transport {
 public:
  /// A message under way. Destroying one that is not complete leaves the message alone: its memory stays valid.
  class Transfer {
   public:
    Transfer() = default;
    Transfer(const Transfer&) = delete;
    Transfer& operator=(const Transfer&) = delete;
    virtual ~Transfer() = default;
    [[nodiscard]] virtual bool test() = 0;  ///< Local. Whether it is complete; does not wait.
    /// Local. False if the deadline passed first. Wait in a loop with a Patience, so that a suspended job goes on.
    [[nodiscard]] virtual bool wait(Deadline deadline) = 0;
  };

  Transport() = default;
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;
  virtual ~Transport() = default;

  [[nodiscard]] virtual int rank() const noexcept = 0;    ///< Rank of this process, from 0.
  [[nodiscard]] virtual int size() const noexcept = 0;    ///< How many ranks there are.
  [[nodiscard]] virtual std::string library() const = 0;  ///< The message layer's name and version, for messages.

  /// COLLECTIVE. A transport over the same ranks whose messages never meet those of any other one: called by
  /// Communicator::connect and Communicator::duplicate.
  [[nodiscard]] virtual std::unique_ptr<Transport> open_channel(Deadline deadline) = 0;

  /// Local: starts a send, never to this rank itself. Messages of one sender with one `tag` (0 to 4095) arrive in the
  /// order sent. The memory stays valid and unchanged until the transfer is complete.
  [[nodiscard]] virtual std::unique_ptr<Transfer> send(int to, int tag, std::span<const std::byte> bytes) = 0;
  /// Local: starts a receive, never from this rank itself, of a message of at most `bytes`; one that is larger fails.
  /// The memory stays valid and untouched until the transfer is complete.
  [[nodiscard]] virtual std::unique_ptr<Transfer> receive(int from, int tag, std::span<std::byte> bytes) = 0;

  /// Local, from any thread: ends waits soon, now and later, with Error{timeout}, where the message layer can do that.
  /// Communicator::interrupt() calls it.
  virtual void interrupt() noexcept {}
  /// Local. This rank takes no further part: ends waits of the others soon, now and later, with Error{rank_failed} and
  /// the text `why`, or another that names this rank, where the message layer can do that. Communicator::leave() calls
  /// it.
  virtual void leave(std::string_view /*why*/) noexcept {}
};

/// Local. A communicator over the ranks of a transport. Collective operations are made of its messages, by trees.
[[nodiscard]] std::unique_ptr<Communicator> make_communicator(std::unique_ptr<Transport> transport);

/// Local. The communicator of a job that is one process and needs no message layer.
[[nodiscard]] std::unique_ptr<Communicator> single_process();

}  // namespace kedge
