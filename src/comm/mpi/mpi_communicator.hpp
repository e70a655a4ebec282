// The Communicator over MPI. Users get it from kedge::mpi (mpi.hpp).
#pragma once

#include <mpi.h>

#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "comm/channels.hpp"
#include "comm/checked_communicator.hpp"
#include "comm/mpi/mpi_leave_notice.hpp"

namespace kedge::comm {

/// Limit of one MPI call, whose counts are int.
struct MpiLimits {
  std::size_t piece_bytes = std::size_t{1} << 30U;  ///< largest piece of a message; a longer one is split
};

/// Makes only non-blocking MPI calls, and polls them. Memory that MPI works on when a wait times out or a call fails is
/// never freed: memory of collective calls and internal channels is leaked here on purpose, other memory is the
/// caller's. The duplicate made by connect() is not freed: MPI_Comm_free is collective, and a destructor that runs
/// during unwinding on one rank, or after MPI_Finalize, must not communicate. MPI_Finalize frees it.
class MpiCommunicator final : public CheckedCommunicator {
 public:
  /// Makes the communicator of kedge::mpi; smaller limits are for tests.
  explicit MpiCommunicator(MPI_Comm comm, MpiLimits limits = {});
  ~MpiCommunicator() override;

  void connect(Deadline deadline) override;
  [[nodiscard]] std::unique_ptr<Communicator> duplicate(Deadline deadline) override;
  [[nodiscard]] std::string name() const override { return name_; }
  [[nodiscard]] std::string library() const override;
  [[nodiscard]] std::string start_warning() const override;
  [[nodiscard]] ThreadSupport thread_support() const noexcept override { return thread_support_; }

  [[nodiscard]] Request send(int to, int channel, std::span<const std::byte> bytes) override;
  [[nodiscard]] Request receive(int from, int channel, std::span<std::byte> bytes) override;
  [[nodiscard]] bool test(Request& request) override;
  void wait(std::span<Request> requests, Deadline deadline) override;

  void all_reduce(std::span<std::uint64_t> values, Reduction reduction, Deadline deadline,
                  std::span<const int> group) override;
  void broadcast(std::span<std::byte> bytes, int root, Deadline deadline, std::span<const int> group) override;
  void barrier(Deadline deadline, std::span<const int> group) override;
  [[nodiscard]] std::vector<Message> sparse_exchange(std::vector<Message> messages, Deadline deadline) override;
  /// Ends waits. Called for duplicates by MPI_Finalize, which continues when no call uses them.
  void interrupt() noexcept override;
  void leave(std::string_view why) noexcept override;
  void begin_call() noexcept override { ++call_number_; }
  void depart(std::string_view why) noexcept override;

 private:
  template <class Body>
  auto communicate(Body&& body);
  template <class Bytes>
  [[nodiscard]] Request start_transfer(int peer, int channel, Bytes bytes);
  void poll_notice();
  void send_notice(MpiLeaveNotice& notice, std::string_view why, std::uint64_t from_call) noexcept;
  [[noreturn]] void throw_not_all_connected(Deadline deadline);
  void interrupt_at_finalize();
  [[nodiscard]] std::string describe_ranks_in_call(std::string_view call) const;

  MPI_Comm source_comm_;
  MpiLimits limits_;
  MPI_Comm comm_ = MPI_COMM_NULL;
  std::string name_;
  ThreadSupport thread_support_ = ThreadSupport::single;
  bool is_odd_exchange_ = false;
  std::mutex mpi_mutex_;                             ///< held during each MPI call
  MpiLeaveNotice failure_notice_{kLeaveChannel};     ///< a rank failed during a call
  MpiLeaveNotice departure_notice_{kDepartChannel};  ///< a rank makes no more calls
  std::uint64_t call_number_ = 0;                    ///< number of the current call, or of the last one
  int finalize_key_ = MPI_KEYVAL_INVALID;
};

}  // namespace kedge::comm
