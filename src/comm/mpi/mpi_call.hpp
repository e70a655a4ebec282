// Checked MPI calls, and polling of non-blocking ones.
#pragma once

#include <mpi.h>
#include <sched.h>

#include <chrono>
#include <string>
#include <thread>

#include "base/text.hpp"
#include "comm/mpi/mpi_library.hpp"
#include "kedge/communicator.hpp"
#include "kedge/error.hpp"

namespace kedge::comm {

/// Returns MPI's own text for an error code.
[[nodiscard]] inline std::string mpi_error_text(int code) {
  std::string text(MPI_MAX_ERROR_STRING, '\0');
  int length = 0;
  if (MPI_Error_string(code, text.data(), &length) != MPI_SUCCESS) length = 0;
  text.resize(static_cast<std::size_t>(length));
  return text;
}

/// Throws Error{io} with MPI's own text unless `code` is MPI_SUCCESS. For calls that do not communicate; `call` is the
/// function's name.
inline void check_local_mpi(int code, const char* call) {
  if (code == MPI_SUCCESS) return;
  throw Error(ErrorCode::io,
              compose("{} failed with code {}: {}; see the MPI library's messages", call, code, mpi_error_text(code)));
}

/// A failure of a call that communicates: whatever the cause, ranks can no longer rely on each other.
class MpiError final : public Error {
 public:
  MpiError(int code, const char* call)
      : Error(ErrorCode::rank_failed, advise(code, failure_text(code, call))),
        failure_text_(failure_text(code, call)) {}

  /// Returns e.g. "MPI_Test failed with code 75: Process Failure".
  [[nodiscard]] const std::string& failure_text() const noexcept { return failure_text_; }

 private:
  static std::string failure_text(int code, const char* call) {
    return compose("{} failed with code {}: {}", call, code, mpi_error_text(code));
  }
  static std::string advise(int code, const std::string& failed) {
    if (is_process_failure(code)) {
      return compose("{}; a rank died: see the MPI library's messages, and start the job again", failed);
    }
    return compose(
        "{}; a rank may have died, or the network failed: see the MPI library's messages, and start the job "
        "again",
        failed);
  }

  std::string failure_text_;
};

/// Throws MpiError unless `code` is MPI_SUCCESS.
inline void check_mpi(int code, const char* call) {
  if (code != MPI_SUCCESS) throw MpiError(code, call);
}

/// Delays between polls: none at first, then a yield of the core, then a short sleep.
class Backoff {
 public:
  void pause() {
    using namespace std::chrono_literals;
    ++pause_count_;
    if (pause_count_ < kSpins) return;
    if (pause_count_ < kYields) {
      sched_yield();
      return;
    }
    std::this_thread::sleep_for(pause_count_ < kShortSleeps ? 50us : 500us);
  }

 private:
  static constexpr int kSpins = 50;
  static constexpr int kYields = 100;  // on shared cores a yield takes time from whoever would end the wait
  static constexpr int kShortSleeps = 4000;
  int pause_count_ = 0;
};

/// Calls `done` until it returns true, for the last time after the deadline. Returns what it returned last.
template <class Done>
[[nodiscard]] bool poll_until(Done&& done, Deadline deadline) {
  WaitTimer wait_timer(deadline);
  Backoff backoff;
  while (true) {
    const bool late = wait_timer.is_over();
    if (done()) return true;
    if (late) return false;
    backoff.pause();
  }
}

[[nodiscard]] inline bool test_mpi(MPI_Request& request) {
  const ScopedMpiErrorsReturn errors_return;
  int done = 0;
  check_mpi(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "MPI_Test");
  return done != 0;
}

}  // namespace kedge::comm
