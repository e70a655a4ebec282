#include "comm/mpi/mpi_leave_notice.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "comm/mpi/mpi_call.hpp"

namespace kedge::comm {

void MpiLeaveNotice::send_notice(const Place& place, std::string_view why, std::uint64_t from_call) noexcept {
  if (message_ == nullptr) return;
  Payload& words = message_->words;
  words.from_call = from_call;
  std::ranges::copy(utf8_truncated(why, words.text.size() - 1), words.text.begin());
  forward(place, place.rank);
}

/// MPI may send it for as long as the process lives: the memory stays.
void MpiLeaveNotice::forward(const Place& place, int from) noexcept {
  Message& message = *message_.release();
  std::size_t sent = 0;
  for (const int to : {(place.rank + 1) / 2 - 1, 2 * place.rank + 1, 2 * place.rank + 2}) {
    if (to < 0 || to >= place.size || to == from) continue;
    (void)MPI_Isend(&message.words, sizeof message.words, MPI_BYTE, to, channel_, place.comm,
                    &message.requests.at(sent++));
  }
}

std::optional<std::string> MpiLeaveNotice::poll_notice(const Place& place, std::uint64_t call) {
  constexpr unsigned kEvery = 8;
  if (!received_) {
    if (message_ == nullptr || ++looks_ % kEvery != 0) return std::nullopt;
    int found = 0;
    MPI_Status status;
    check_mpi(MPI_Iprobe(MPI_ANY_SOURCE, channel_, place.comm, &found, &status), "MPI_Iprobe");
    if (found == 0) return std::nullopt;
    check_mpi(MPI_Recv(&message_->words, sizeof message_->words, MPI_BYTE, status.MPI_SOURCE, channel_, place.comm,
                       MPI_STATUS_IGNORE),
              "MPI_Recv");
    received_ = message_->words;
    forward(place, status.MPI_SOURCE);
  }
  if (call < received_->from_call) return std::nullopt;
  return std::string(received_->text.data());
}

}  // namespace kedge::comm
