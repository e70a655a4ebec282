#include "comm/mpi/mpi_exchange.hpp"

#include <algorithm>
#include <utility>

#include "comm/mpi/mpi_call.hpp"

namespace kedge::comm {

MpiExchange::MpiExchange(MPI_Comm comm, int tag, std::vector<Communicator::Message> messages, std::size_t piece_bytes)
    : comm_(comm), tag_(tag), piece_bytes_(piece_bytes), outgoing_(std::move(messages)) {}

void MpiExchange::start() {
  for (const auto& message : outgoing_) start_sends(message);
}

void MpiExchange::start_sends(const Communicator::Message& message) {
  const auto size = message.bytes.size();
  for (std::size_t offset = 0; offset <= size; offset += piece_bytes_) {
    const auto length = std::min(piece_bytes_, size - offset);
    sends_.push_back({message.peer, MPI_REQUEST_NULL});
    check_mpi(MPI_Issend(message.bytes.data() + offset, static_cast<int>(length), MPI_BYTE, message.peer, tag_, comm_,
                         &sends_.back().request),
              "MPI_Issend");
  }
}

/// Matches one piece that has arrived, if any. Matched probes, so that no other thread can take it between.
bool MpiExchange::receive_one() {
  int found = 0;
  MPI_Message matched = MPI_MESSAGE_NULL;
  MPI_Status status;
  check_mpi(MPI_Improbe(MPI_ANY_SOURCE, tag_, comm_, &found, &matched, &status), "MPI_Improbe");
  if (found == 0) return false;
  int length = 0;
  check_mpi(MPI_Get_count(&status, MPI_BYTE, &length), "MPI_Get_count");
  auto& piece = *pieces_.emplace_back(std::make_unique<Piece>());
  piece.from = status.MPI_SOURCE;
  piece.bytes.resize(static_cast<std::size_t>(length));
  check_mpi(MPI_Imrecv(piece.bytes.data(), length, MPI_BYTE, &matched, &piece.request), "MPI_Imrecv");
  return true;
}

bool MpiExchange::test() {
  // The barrier is asked before the probe: once it has ended, all pieces have been matched here.
  if (in_barrier_ && !barrier_done_) barrier_done_ = test_mpi(barrier_);
  if (!barrier_done_) {
    while (receive_one()) continue;
  }
  while (first_open_piece_ < pieces_.size() && test_mpi(pieces_[first_open_piece_]->request)) ++first_open_piece_;
  while (first_open_send_ < sends_.size() && test_mpi(sends_[first_open_send_].request)) ++first_open_send_;
  if (!in_barrier_ && first_open_send_ == sends_.size()) {
    check_mpi(MPI_Ibarrier(comm_, &barrier_), "MPI_Ibarrier");
    in_barrier_ = true;
  }
  return barrier_done_ && first_open_piece_ == pieces_.size();
}

std::string MpiExchange::describe_awaited_ranks() const {
  if (in_barrier_) return "at least one other rank (in a sparse exchange)";
  return compose("rank {} to receive a message (in a sparse exchange)", sends_[first_open_send_].to);
}

std::vector<Communicator::Message> MpiExchange::take_messages() {
  std::stable_sort(pieces_.begin(), pieces_.end(), [](const auto& a, const auto& b) { return a->from < b->from; });
  std::vector<Communicator::Message> messages;
  bool begins = true;  // the next piece is the first of its message
  for (const auto& piece : pieces_) {
    const bool ends = piece->bytes.size() < piece_bytes_;
    if (begins) messages.push_back({piece->from, std::move(piece->bytes)});
    else messages.back().bytes.insert(messages.back().bytes.end(), piece->bytes.begin(), piece->bytes.end());
    begins = ends;
  }
  return messages;
}

}  // namespace kedge::comm
