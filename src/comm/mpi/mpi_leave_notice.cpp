#include "comm/mpi/mpi_leave_notice.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "comm/mpi/mpi_call.hpp"

namespace kedge::comm {

void MpiLeaveNotice::send_notice(const TreePosition& position, std::string_view why, std::uint64_t from_call) noexcept {
  if (message_ == nullptr) return;
  Payload& words = message_->payload;
  words.from_call = from_call;
  std::ranges::copy(truncate_utf8(why, words.text.size() - 1), words.text.begin());
  forward(position, position.rank);
}

/// MPI may send it for as long as the process lives: the memory stays.
void MpiLeaveNotice::forward(const TreePosition& position, int from) noexcept {
  Message& message = *message_.release();
  std::size_t sent = 0;
  for (const int to : {(position.rank + 1) / 2 - 1, 2 * position.rank + 1, 2 * position.rank + 2}) {
    if (to < 0 || to >= position.size || to == from) continue;
    (void)MPI_Isend(&message.payload, sizeof message.payload, MPI_BYTE, to, channel_, position.comm,
                    &message.requests.at(sent++));
  }
}

std::optional<std::string> MpiLeaveNotice::poll_notice(const TreePosition& position, std::uint64_t call) {
  constexpr unsigned kEvery = 8;
  if (!received_) {
    if (message_ == nullptr || ++poll_count_ % kEvery != 0) return std::nullopt;
    int found = 0;
    MPI_Status status;
    check_mpi(MPI_Iprobe(MPI_ANY_SOURCE, channel_, position.comm, &found, &status), "MPI_Iprobe");
    if (found == 0) return std::nullopt;
    check_mpi(MPI_Recv(&message_->payload, sizeof message_->payload, MPI_BYTE, status.MPI_SOURCE, channel_,
                       position.comm, MPI_STATUS_IGNORE),
              "MPI_Recv");
    received_ = message_->payload;
    forward(position, status.MPI_SOURCE);
  }
  if (call < received_->from_call) return std::nullopt;
  return std::string(received_->text.data());
}

}  // namespace kedge::comm
