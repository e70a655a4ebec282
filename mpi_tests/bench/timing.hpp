// Time that all ranks spend together. Nothing of Kedge is used here.
#pragma once

#include <mpi.h>

#include <exception>
#include <string>

namespace kedge_bench {

/// COLLECTIVE over all processes. If any rank has something to report, all throw std::runtime_error with the text of
/// the lowest one; so too if the program was told to stop (SIGINT, SIGTERM).
void agree(const std::string& failure);

/// Local. From now on SIGINT and SIGTERM are kept for the next agree(), so that what was made can be removed.
void keep_signals();

/// COLLECTIVE over all processes. What `work` throws on one rank is thrown on all.
template <class Work>
void together(Work&& work) {
  std::string failure;
  try {
    work();
  } catch (const std::exception& error) {
    failure = error.what();
    if (failure.empty()) failure = "an error without a text";
  }
  agree(failure);
}

/// COLLECTIVE over all processes. The most that any of them gives.
[[nodiscard]] double most(double value);

/// COLLECTIVE over all processes. Of what all of them give.
[[nodiscard]] double sum(double value);

/// Local. Processor time that this process has taken so far, in all its threads.
[[nodiscard]] double cpu_seconds();

/// COLLECTIVE over all processes. Seconds from a common start until the last rank is done: where ranks share cores, one
/// may begin when another has ended.
template <class Work>
[[nodiscard]] double timed(Work&& work) {
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin_s = MPI_Wtime();
  together(work);
  return most(MPI_Wtime() - begin_s);
}

/// COLLECTIVE. Of what others are compared with: measured twice, as a single disturbance must not flatter them.
template <class Measure>
[[nodiscard]] double faster_of_two(Measure&& measure) {
  const double first_s = measure();
  const double second_s = measure();
  return first_s < second_s ? first_s : second_s;
}

}  // namespace kedge_bench
