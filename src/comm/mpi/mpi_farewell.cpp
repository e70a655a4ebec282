#include "comm/mpi/mpi_farewell.hpp"

#include <algorithm>

#include "comm/channels.hpp"
#include "comm/mpi/mpi_call.hpp"

namespace kedge::comm {

void MpiFarewell::say(MPI_Comm comm, int rank, int size, std::string_view why) noexcept {
  if (message_ == nullptr) return;
  std::copy_n(why.begin(), std::min(why.size(), message_->text.size() - 1), message_->text.begin());
  pass_on(comm, rank, size, rank);
}

/// MPI may send it for as long as the process lives: the memory stays.
void MpiFarewell::pass_on(MPI_Comm comm, int rank, int size, int from) noexcept {
  Message& message = *message_.release();
  std::size_t sent = 0;
  for (const int to : {(rank + 1) / 2 - 1, 2 * rank + 1, 2 * rank + 2}) {
    if (to < 0 || to >= size || to == from) continue;
    (void)MPI_Isend(message.text.data(), static_cast<int>(message.text.size()), MPI_CHAR, to, kLeaveChannel, comm,
                    &message.requests.at(sent++));
  }
}

std::optional<std::string> MpiFarewell::hear(MPI_Comm comm, int rank, int size) {
  constexpr unsigned kEvery = 8;
  if (message_ == nullptr || ++looks_ % kEvery != 0) return std::nullopt;
  int found = 0;
  MPI_Status status;
  check_mpi(MPI_Iprobe(MPI_ANY_SOURCE, kLeaveChannel, comm, &found, &status), "MPI_Iprobe");
  if (found == 0) return std::nullopt;
  check_mpi(MPI_Recv(message_->text.data(), static_cast<int>(message_->text.size()), MPI_CHAR, status.MPI_SOURCE,
                     kLeaveChannel, comm, MPI_STATUS_IGNORE),
            "MPI_Recv");
  std::string why(message_->text.data());
  pass_on(comm, rank, size, status.MPI_SOURCE);
  return why;
}

}  // namespace kedge::comm
