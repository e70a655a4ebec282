// A send or receive of one message over MPI.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "kedge/communicator.hpp"

namespace kedge::comm {

/// Transfers pieces of at most `piece_bytes`, because counts are int. On internal channels it uses memory of its own
/// (see tree_collectives.hpp). Destroying an incomplete one leaks the memory that MPI still works on.
class MpiTransfer final : public Communicator::Operation {
 public:
  MpiTransfer(int peer, int channel, std::span<const std::byte> bytes);  ///< a send
  MpiTransfer(int peer, int channel, std::span<std::byte> bytes);        ///< a receive
  ~MpiTransfer() override;

  /// Starts the transfer; call it once. Throws Error{rank_failed}, and must then not be used again. Local.
  void start(MPI_Comm comm, std::size_t piece_bytes);

  [[nodiscard]] int peer() const noexcept { return peer_; }
  [[nodiscard]] bool is_complete() const noexcept { return next_piece_ == pieces_.size(); }

  /// Local. True if complete. Throws Error{bad_state} if a message of another size came, Error{rank_failed}.
  [[nodiscard]] bool test();

 private:
  struct Piece {
    int length = 0;
    MPI_Request request = MPI_REQUEST_NULL;
  };

  [[nodiscard]] bool test(Piece& piece);
  [[noreturn]] void throw_wrong_size(std::string_view how_many) const;

  int peer_;
  int channel_;
  bool is_receive_;
  std::span<const std::byte> source_;
  std::span<std::byte> target_;
  std::unique_ptr<std::vector<std::byte>> own_buffer_;
  std::vector<Piece> pieces_;
  std::size_t next_piece_ = 0;  // first piece that is not complete
};

}  // namespace kedge::comm
