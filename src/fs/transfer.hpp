// Whole transfers out of system calls that may be interrupted or do less than asked.
#pragma once

#include <cerrno>
#include <cstddef>

namespace kedge::fs {

/// Calls `call` until it is not interrupted; its value, -1 with errno set on failure.
template <class Call>
auto retry_interrupted(Call&& call) {
  decltype(call()) result;
  do {
    result = call();
  } while (result == -1 && errno == EINTR);
  return result;
}

/// Result of a transfer: `error` is 0 if it ended because all was done or because a call moved nothing (for a read: the
/// end of the file).
struct Transferred {
  std::size_t bytes = 0;
  int error = 0;
};

/// Moves `length` bytes by `call(done, left)` -> bytes moved, 0, or -1 with errno, as pread and pwrite do.
/// EINTR is retried, short moves are continued.
template <class Call>
[[nodiscard]] Transferred transfer_all(std::size_t length, Call&& call) {
  Transferred result;
  while (result.bytes < length) {
    const auto moved = call(result.bytes, length - result.bytes);
    if (moved == 0) break;
    if (moved < 0) {
      if (errno == EINTR) continue;
      result.error = errno;
      break;
    }
    result.bytes += static_cast<std::size_t>(moved);
  }
  return result;
}

}  // namespace kedge::fs
