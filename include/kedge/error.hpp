// How Kedge reports failures: Error (thrown), Status (returned), Failure (what both carry).
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace kedge {

/// The kind of failure. All ranks throw the same code, except for `timeout` and `rank_failed`, which end the engine.
enum class ErrorCode : std::uint8_t {
  invalid_argument = 1,  ///< a bad value from the caller; the message names the field or the call
  bad_state,             ///< the call is not allowed now (wrong order, ranks in different calls, dead engine)
  not_found,             ///< no such tag, region or file
  mismatch,              ///< not what was saved (dtype, shape, place, members, input, run), or ranks disagree
  no_space,              ///< ENOSPC, EDQUOT, no inodes, memory limit; the message gives needed and free
  io,                    ///< a system call failed; path and errno are given
  corrupt,               ///< stored bytes differ from what was written; the message says where
  unrecoverable,         ///< checkpoints exist and none can be recovered; lists each and why it is lost
  timeout,               ///< a peer did not answer in time; the message names it
  busy,                  ///< held by another process; the message names it
  rank_failed,           ///< a rank died, or communication with it failed; the message names it where MPI can tell
  device_failed,  ///< a GPU or its driver failed: CUDA is unusable in a process; the message says what it reported
};

/// The code's name as written above, e.g. "no_space".
[[nodiscard]] std::string_view to_string(ErrorCode code) noexcept;

/// A failure of a call, as Error and Status carry it.
struct Failure {
  ErrorCode code = ErrorCode::io;  ///< its kind
  std::string message = {};        ///< what happened and what to do
  int rank = -1;                   ///< MPI rank on which it happened, or -1
  std::string path = {};           ///< the file concerned, or empty
  int system_errno = 0;            ///< errno of the system call, or 0
};

/// One line for people: "no_space on rank 3: … (path …: No space left on device)".
[[nodiscard]] std::string to_string(const Failure& failure);

/// Thrown by collective calls, with the same code on every rank.
class Error : public std::runtime_error {
 public:
  explicit Error(Failure failure);  ///< what() is to_string(failure).
  /// An error without rank and path.
  Error(ErrorCode code, std::string message) : Error(Failure{code, std::move(message), -1, {}, 0}) {}

  [[nodiscard]] const Failure& failure() const noexcept { return failure_; }  ///< All that is known of it.
  [[nodiscard]] ErrorCode code() const noexcept {
    return failure_.code;
  }  ///< The failure's code, the same on every
     ///< rank.

 private:
  Failure failure_;
};

/// Outcome of a local call that never throws (save, load, routes). It may be ignored: the engine remembers the first
/// failure, and `commit` or `close` throws it on every rank.
class Status {
 public:
  Status() = default;
  /// Status of a call that failed.
  Status(Failure failure) : failure_(std::move(failure)) {}  // NOLINT(google-explicit-constructor)

  [[nodiscard]] bool ok() const noexcept { return !failure_.has_value(); }  ///< Nothing failed.
  explicit operator bool() const noexcept { return ok(); }                  ///< As ok().

  /// The failure; only if !ok().
  [[nodiscard]] const Failure& failure() const { return failure_.value(); }

 private:
  std::optional<Failure> failure_;
};

}  // namespace kedge
