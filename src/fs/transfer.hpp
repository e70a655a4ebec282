// Complete transfers with system calls that may be interrupted or transfer less than requested.
#pragma once

#include <cerrno>
#include <cstddef>

namespace kedge::fs {

/// Repeats `call` while it is interrupted; returns its value, -1 with errno on failure.
template <class Call>
auto retry_interrupted(Call&& call) {
  decltype(call()) result;
  do {
    result = call();
  } while (result == -1 && errno == EINTR);
  return result;
}

/// Result of a transfer. `error` is 0 if all was transferred, or a call transferred nothing (end of file, if reading).
struct Transferred {
  std::size_t bytes = 0;
  int error = 0;
};

/// Transfers `length` bytes by `call(done, left)`, which returns bytes, 0, or -1 with errno, as pread and pwrite do.
/// Retries EINTR and continues short transfers.
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
