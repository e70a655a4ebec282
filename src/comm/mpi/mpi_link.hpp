// Messages between processes that host ranks, over MPI.
#pragma once

#include <mpi.h>

#include <list>

#include "comm/hosted/process_link.hpp"

namespace kedge::comm {

/// A link over a duplicate of a communicator, which MPI_Finalize frees. The memory of messages that are not sent yet is
/// not freed with the link.
class MpiLink final : public ProcessLink {
 public:
  /// COLLECTIVE. Duplicates the communicator.
  explicit MpiLink(MPI_Comm comm);
  ~MpiLink() override;

  [[nodiscard]] int process() const noexcept override { return process_; }
  [[nodiscard]] int process_count() const noexcept override { return process_count_; }
  [[nodiscard]] std::string library() const override { return library_; }
  void send(int to, std::vector<std::byte> message) override;
  [[nodiscard]] std::optional<std::vector<std::byte>> receive() override;
  [[nodiscard]] bool is_idle() override;

 private:
  struct PendingSend {
    std::vector<std::byte> message;
    MPI_Request request = MPI_REQUEST_NULL;
  };
  void drop_completed_sends();

  MPI_Comm comm_ = MPI_COMM_NULL;
  int process_ = 0;
  int process_count_ = 1;
  std::string library_;
  std::list<PendingSend> pending_sends_;
};

}  // namespace kedge::comm
