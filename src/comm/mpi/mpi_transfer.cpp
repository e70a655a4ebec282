#include "comm/mpi/mpi_transfer.hpp"

#include <algorithm>
#include <cstring>

#include "comm/channels.hpp"
#include "comm/mpi/mpi_call.hpp"

namespace kedge::comm {
namespace {

bool is_truncation(int code) {
  int error_class = MPI_SUCCESS;
  return MPI_Error_class(code, &error_class) == MPI_SUCCESS && error_class == MPI_ERR_TRUNCATE;
}

}  // namespace

MpiTransfer::MpiTransfer(int peer, int channel, std::span<const std::byte> bytes)
    : peer_(peer), channel_(channel), is_receive_(false), source_(bytes) {
  if (channel < kFirstInternalChannel) return;
  own_buffer_ = std::make_unique<std::vector<std::byte>>(bytes.begin(), bytes.end());
  source_ = *own_buffer_;
}

MpiTransfer::MpiTransfer(int peer, int channel, std::span<std::byte> bytes)
    : peer_(peer), channel_(channel), is_receive_(true), target_(bytes) {
  if (channel >= kFirstInternalChannel) own_buffer_ = std::make_unique<std::vector<std::byte>>(bytes.size());
}

MpiTransfer::~MpiTransfer() {
  if (!is_complete()) static_cast<void>(own_buffer_.release());  // MPI still works on it
}

void MpiTransfer::start(MPI_Comm comm, std::size_t piece_bytes) {
  const std::size_t size = is_receive_ ? target_.size() : source_.size();
  std::byte* const into = own_buffer_ ? own_buffer_->data() : target_.data();
  pieces_.reserve(size / piece_bytes + 1);
  std::size_t offset = 0;
  do {
    Piece& piece = pieces_.emplace_back();
    piece.length = static_cast<int>(std::min(piece_bytes, size - offset));
    if (is_receive_) {
      check_mpi(MPI_Irecv(into + offset, piece.length, MPI_BYTE, peer_, channel_, comm, &piece.request), "MPI_Irecv");
    } else {
      check_mpi(MPI_Isend(source_.data() + offset, piece.length, MPI_BYTE, peer_, channel_, comm, &piece.request),
                "MPI_Isend");
    }
    offset += static_cast<std::size_t>(piece.length);
  } while (offset < size);
}

bool MpiTransfer::test() {
  while (!is_complete()) {
    if (!test(pieces_[next_piece_])) return false;
  }
  if (is_receive_ && own_buffer_ && !own_buffer_->empty())
    std::memcpy(target_.data(), own_buffer_->data(), own_buffer_->size());
  own_buffer_.reset();
  return true;
}

bool MpiTransfer::test(Piece& piece) {
  int done = 0;
  MPI_Status status;
  int code = MPI_SUCCESS;
  {
    const ScopedMpiErrorsReturn errors_return;
    code = MPI_Test(&piece.request, &done, &status);
  }
  if (is_receive_ && code != MPI_SUCCESS && is_truncation(code)) {
    ++next_piece_;
    throw_wrong_size("more");
  }
  check_mpi(code, "MPI_Test");  // the piece stays open: MPI may still work on it
  if (done == 0) return false;
  ++next_piece_;
  int length = piece.length;
  if (is_receive_) check_mpi(MPI_Get_count(&status, MPI_BYTE, &length), "MPI_Get_count");
  if (length != piece.length) throw_wrong_size("fewer");
  return true;
}

void MpiTransfer::throw_wrong_size(std::string_view how_many) const {
  throw Error(ErrorCode::bad_state,
              compose("expected {} bytes from rank {} and got {}; send and receive sizes must match",
                      is_receive_ ? target_.size() : source_.size(), peer_, how_many));
}

}  // namespace kedge::comm
