// Checked MPI calls and the polling of what is under way.
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

/// MPI's own text for an error code.
[[nodiscard]] inline std::string mpi_text(int code) {
  std::string text(MPI_MAX_ERROR_STRING, '\0');
  int length = 0;
  if (MPI_Error_string(code, text.data(), &length) != MPI_SUCCESS) length = 0;
  text.resize(static_cast<std::size_t>(length));
  return text;
}

/// For calls that do not communicate: throws Error{io} with MPI's own text unless `code` is MPI_SUCCESS. `call` is the
/// function's name.
inline void check_local(int code, const char* call) {
  if (code == MPI_SUCCESS) return;
  throw Error(ErrorCode::io,
              compose("{} failed with code {}: {}; see the MPI library's messages", call, code, mpi_text(code)));
}

/// A call that communicates failed: whatever the cause, ranks can no longer rely on each other.
class MpiError final : public Error {
 public:
  MpiError(int code, const char* call)
      : Error(ErrorCode::rank_failed, advise(code, failure_text(code, call))),
        failure_text_(failure_text(code, call)) {}

  /// E.g. "MPI_Test failed with code 75: Process Failure".
  [[nodiscard]] const std::string& failure_text() const noexcept { return failure_text_; }

 private:
  static std::string failure_text(int code, const char* call) {
    return compose("{} failed with code {}: {}", call, code, mpi_text(code));
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

/// Waits politely: at first it asks again at once, then gives way to others on the core, then sleeps a little.
class Backoff {
 public:
  void pause() {
    using namespace std::chrono_literals;
    ++turns_;
    if (turns_ < kSpins) return;
    if (turns_ < kYields) {
      sched_yield();
      return;
    }
    std::this_thread::sleep_for(turns_ < kShortSleeps ? 50us : 500us);
  }

 private:
  static constexpr int kSpins = 50;
  static constexpr int kYields = 100;  // on shared cores a yield takes time from whoever would end the wait
  static constexpr int kShortSleeps = 4000;
  int turns_ = 0;
};

/// Calls `done` until it says true; false if the deadline passed first. `done` is asked once more after it.
template <class Done>
[[nodiscard]] bool poll(Done&& done, Deadline deadline) {
  WaitTimer patience(deadline);
  Backoff backoff;
  while (true) {
    const bool late = patience.is_over();
    if (done()) return true;
    if (late) return false;
    backoff.pause();
  }
}

[[nodiscard]] inline bool test_mpi(MPI_Request& request) {
  const ErrorsReturn errors_return;
  int done = 0;
  check_mpi(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "MPI_Test");
  return done != 0;
}

}  // namespace kedge::comm
