#include "comm/mpi/mpi_link.hpp"

#include <climits>
#include <utility>

#include "base/keep_forever.hpp"
#include "base/text.hpp"
#include "comm/mpi/mpi_call.hpp"

namespace kedge::comm {
namespace {

constexpr int kTag = 0;

}  // namespace

MpiLink::MpiLink(MPI_Comm comm) : library_(mpi_library()) {
  check_mpi(MPI_Comm_dup(comm, &comm_), "MPI_Comm_dup");
  check_local_mpi(MPI_Comm_rank(comm_, &process_), "MPI_Comm_rank");
  check_local_mpi(MPI_Comm_size(comm_, &process_count_), "MPI_Comm_size");
  check_local_mpi(MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
}

MpiLink::~MpiLink() {
  if (!pending_sends_.empty()) keep_forever(std::make_shared<std::list<PendingSend>>(std::move(pending_sends_)));
}

void MpiLink::send(int to, std::vector<std::byte> message) {
  if (message.size() > INT_MAX) {
    throw Error(ErrorCode::invalid_argument, compose("a message of {} bytes is too large for MPI", message.size()));
  }
  PendingSend& sending = pending_sends_.emplace_back(PendingSend{std::move(message)});
  const auto bytes = static_cast<int>(sending.message.size());
  check_mpi(MPI_Isend(sending.message.data(), bytes, MPI_BYTE, to, kTag, comm_, &sending.request), "MPI_Isend");
}

std::optional<std::vector<std::byte>> MpiLink::receive() {
  int has_come = 0;
  MPI_Message incoming = MPI_MESSAGE_NULL;
  MPI_Status status;
  check_mpi(MPI_Improbe(MPI_ANY_SOURCE, kTag, comm_, &has_come, &incoming, &status), "MPI_Improbe");
  if (has_come == 0) {
    drop_completed_sends();
    return std::nullopt;
  }
  int bytes = 0;
  check_mpi(MPI_Get_count(&status, MPI_BYTE, &bytes), "MPI_Get_count");
  std::vector<std::byte> message(static_cast<std::size_t>(bytes));
  check_mpi(MPI_Mrecv(message.data(), bytes, MPI_BYTE, &incoming, MPI_STATUS_IGNORE), "MPI_Mrecv");
  return message;
}

bool MpiLink::is_idle() {
  drop_completed_sends();
  return pending_sends_.empty();
}

void MpiLink::drop_completed_sends() {
  std::erase_if(pending_sends_, [](PendingSend& one) { return test_mpi(one.request); });
}

}  // namespace kedge::comm
