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

/// In pieces of at most `piece_bytes`, whose counts are int. On internal channels it goes through memory of its own
/// (see tree_collectives.hpp). Destroying one that is not complete leaks what MPI still works on.
class MpiTransfer final : public Communicator::Operation {
 public:
  MpiTransfer(int peer, int channel, std::span<const std::byte> bytes);  ///< a send
  MpiTransfer(int peer, int channel, std::span<std::byte> bytes);        ///< a receive
  ~MpiTransfer() override;

  /// Local. Once. Throws Error{rank_failed}, and must then not be used again.
  void start(MPI_Comm comm, std::size_t piece_bytes);

  [[nodiscard]] int peer() const noexcept { return peer_; }
  [[nodiscard]] bool complete() const noexcept { return next_ == pieces_.size(); }

  /// Local. True if complete. Throws Error{bad_state} if a message of another size came, Error{rank_failed}.
  [[nodiscard]] bool test();

 private:
  struct Piece {
    int length = 0;
    MPI_Request request = MPI_REQUEST_NULL;
  };

  [[nodiscard]] bool test(Piece& piece);
  [[noreturn]] void throw_size(std::string_view how_many) const;

  int peer_;
  int channel_;
  bool receives_;
  std::span<const std::byte> source_;
  std::span<std::byte> target_;
  std::unique_ptr<std::vector<std::byte>> own_;
  std::vector<Piece> pieces_;
  std::size_t next_ = 0;  // first piece that is not complete
};

}  // namespace kedge::comm
