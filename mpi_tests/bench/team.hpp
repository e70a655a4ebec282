// Some of the ranks, who work while the others sleep. Nothing of Kedge is used here.
#pragma once

#include <mpi.h>

#include <functional>

namespace kedge_bench {

/// The first `size` ranks; the others sleep.
class Team {
 public:
  explicit Team(int size);
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  [[nodiscard]] int size() const noexcept { return size_; }
  [[nodiscard]] MPI_Comm communicator() const noexcept { return communicator_; }
  [[nodiscard]] bool has_me() const noexcept { return communicator_ != MPI_COMM_NULL; }
  /// COLLECTIVE over all ranks. Seconds of the slowest member.
  [[nodiscard]] double time(const std::function<void()>& work) const;

 private:
  int size_;
  MPI_Comm communicator_ = MPI_COMM_NULL;
};

}  // namespace kedge_bench
