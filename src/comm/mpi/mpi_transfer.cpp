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
    : peer_(peer), channel_(channel), receives_(false), source_(bytes) {
  if (channel < kUserChannels) return;
  own_ = std::make_unique<std::vector<std::byte>>(bytes.begin(), bytes.end());
  source_ = *own_;
}

MpiTransfer::MpiTransfer(int peer, int channel, std::span<std::byte> bytes)
    : peer_(peer), channel_(channel), receives_(true), target_(bytes) {
  if (channel >= kUserChannels) own_ = std::make_unique<std::vector<std::byte>>(bytes.size());
}

MpiTransfer::~MpiTransfer() {
  if (!complete()) static_cast<void>(own_.release());  // MPI still works on it
}

void MpiTransfer::start(MPI_Comm comm, std::size_t piece_bytes) {
  const std::size_t size = receives_ ? target_.size() : source_.size();
  std::byte* const into = own_ ? own_->data() : target_.data();
  pieces_.reserve(size / piece_bytes + 1);
  std::size_t offset = 0;
  do {
    Piece& piece = pieces_.emplace_back();
    piece.length = static_cast<int>(std::min(piece_bytes, size - offset));
    if (receives_) {
      check_mpi(MPI_Irecv(into + offset, piece.length, MPI_BYTE, peer_, channel_, comm, &piece.request), "MPI_Irecv");
    } else {
      check_mpi(MPI_Isend(source_.data() + offset, piece.length, MPI_BYTE, peer_, channel_, comm, &piece.request),
                "MPI_Isend");
    }
    offset += static_cast<std::size_t>(piece.length);
  } while (offset < size);
}

bool MpiTransfer::test() {
  while (!complete()) {
    if (!test(pieces_[next_])) return false;
  }
  if (receives_ && own_ && !own_->empty()) std::memcpy(target_.data(), own_->data(), own_->size());
  own_.reset();
  return true;
}

bool MpiTransfer::test(Piece& piece) {
  int done = 0;
  MPI_Status status;
  int code = MPI_SUCCESS;
  {
    const ErrorsReturn errors_return;
    code = MPI_Test(&piece.request, &done, &status);
  }
  if (receives_ && code != MPI_SUCCESS && is_truncation(code)) {
    ++next_;
    throw_size("more");
  }
  check_mpi(code, "MPI_Test");  // the piece stays open: MPI may still work on it
  if (done == 0) return false;
  ++next_;
  int length = piece.length;
  if (receives_) check_mpi(MPI_Get_count(&status, MPI_BYTE, &length), "MPI_Get_count");
  if (length != piece.length) throw_size("fewer");
  return true;
}

void MpiTransfer::throw_size(std::string_view how_many) const {
  throw Error(ErrorCode::bad_state,
              compose("expected {} bytes from rank {} and got {}; send and receive sizes must match",
                      receives_ ? target_.size() : source_.size(), peer_, how_many));
}

}  // namespace kedge::comm
