#include "timing.hpp"

#include <csignal>
#include <ctime>
#include <stdexcept>

namespace kedge_bench {
namespace {

volatile std::sig_atomic_t stop_asked = 0;  // NOLINT: a signal handler reaches nothing else

void ask_to_stop(int) { stop_asked = 1; }

}  // namespace

void keep_signals() {
  (void)std::signal(SIGINT, ask_to_stop);
  (void)std::signal(SIGTERM, ask_to_stop);
}

void agree(const std::string& failure) {
  std::string text = failure.empty() && stop_asked != 0 ? "stopped by a signal" : failure;
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  int teller = text.empty() ? size : rank;
  MPI_Allreduce(MPI_IN_PLACE, &teller, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  if (teller == size) return;
  int length = static_cast<int>(text.size());
  MPI_Bcast(&length, 1, MPI_INT, teller, MPI_COMM_WORLD);
  text.resize(static_cast<std::size_t>(length));
  MPI_Bcast(text.data(), length, MPI_CHAR, teller, MPI_COMM_WORLD);
  throw std::runtime_error("rank " + std::to_string(teller) + ": " + text);
}

double most(double value) {
  MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return value;
}

double sum(double value) {
  MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  return value;
}

double cpu_seconds() {
  timespec spent{};
  (void)::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &spent);
  return static_cast<double>(spent.tv_sec) + 1e-9 * static_cast<double>(spent.tv_nsec);
}

}  // namespace kedge_bench
