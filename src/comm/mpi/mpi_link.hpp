// Messages between processes that host ranks, over MPI.
#pragma once

#include <mpi.h>

#include <list>

#include "comm/hosted/process_link.hpp"

namespace kedge::comm {

/// Over a duplicate of a communicator, which MPI_Finalize takes back. The memory of a message that is not sent when it
/// is destroyed stays.
class MpiLink final : public ProcessLink {
 public:
  /// COLLECTIVE.
  explicit MpiLink(MPI_Comm comm);
  ~MpiLink() override;

  [[nodiscard]] int process() const noexcept override { return process_; }
  [[nodiscard]] int processes() const noexcept override { return processes_; }
  [[nodiscard]] std::string library() const override { return library_; }
  void send(int to, std::vector<std::byte> message) override;
  [[nodiscard]] std::optional<std::vector<std::byte>> receive() override;
  [[nodiscard]] bool is_idle() override;

 private:
  struct Sending {
    std::vector<std::byte> message;
    MPI_Request request = MPI_REQUEST_NULL;
  };
  void drop_sent();

  MPI_Comm comm_ = MPI_COMM_NULL;
  int process_ = 0;
  int processes_ = 1;
  std::string library_;
  std::list<Sending> sending_;
};

}  // namespace kedge::comm
