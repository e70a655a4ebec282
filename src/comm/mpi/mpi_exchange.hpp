// Sparse exchange over MPI whose cost grows with the messages and log(ranks), not with the ranks.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "kedge/communicator.hpp"

namespace kedge::comm {

/// One exchange: the non-blocking consensus (NBX) of Hoefler, Siebert and Lumsdaine, "Scalable communication protocols
/// for dynamic sparse data exchange", PPoPP 2010. Messages go out by synchronous sends; a rank whose sends were all
/// received enters a non-blocking barrier; when it ends, no message is in transit. A message travels in pieces of
/// `piece_bytes`; a shorter one (maybe empty) ends it, so no header is needed.
class MpiExchange {
 public:
  /// `tag` must differ from that of the previous exchange: a fast rank may already be in the next one (never further,
  /// because that needs this rank in its barrier).
  MpiExchange(MPI_Comm comm, int tag, std::vector<Communicator::Message> messages, std::size_t piece_bytes);

  /// COLLECTIVE. Starts the exchange; call it before test(). MPI works on this object's memory from here on: if a call
  /// throws, it must not be destroyed.
  void start();

  /// Makes progress; returns true when the exchange is complete. Local.
  [[nodiscard]] bool test();

  /// Returns a text that names the ranks for which this rank waits. Local.
  [[nodiscard]] std::string describe_awaited_ranks() const;

  /// Returns the messages for this rank, ordered by sender. Only after test() returned true. Local.
  [[nodiscard]] std::vector<Communicator::Message> take_messages();

 private:
  struct Send {
    int to = 0;
    MPI_Request request = MPI_REQUEST_NULL;
  };
  struct Piece {
    int from = 0;
    std::vector<std::byte> bytes;
    MPI_Request request = MPI_REQUEST_NULL;
  };

  void start_sends(const Communicator::Message& message);
  [[nodiscard]] bool receive_one();

  MPI_Comm comm_;
  int tag_;
  std::size_t piece_bytes_;
  std::vector<Communicator::Message> outgoing_;
  std::vector<Send> sends_;
  std::vector<std::unique_ptr<Piece>> pieces_;  // in the order they were matched; each stays where it is
  std::size_t first_open_send_ = 0;
  std::size_t first_open_piece_ = 0;
  bool in_barrier_ = false;
  bool barrier_done_ = false;
  MPI_Request barrier_ = MPI_REQUEST_NULL;
};

}  // namespace kedge::comm
