// Complete transfers with system calls that may be interrupted or transfer less than requested.
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>

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
struct TransferResult {
  std::size_t bytes = 0;
  int error = 0;
};

/// Transfers `length` bytes by `call(done, left)`, which returns bytes, 0, or -1 with errno, as pread and pwrite do.
/// Retries EINTR and continues short transfers.
template <class Call>
[[nodiscard]] TransferResult transfer_all(std::size_t length, Call&& call) {
  TransferResult result;
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

/// Fits the L2 cache: the checksum finds the bytes there that were just copied.
inline constexpr std::size_t kCachedPieceBytes = std::size_t{256} << 10U;

/// Calls step(offset, length) for consecutive pieces of at most `piece_bytes`.
template <class Step>
void for_each_piece(std::uint64_t length, std::uint64_t piece_bytes, Step&& step) {
  for (std::uint64_t done = 0; done < length; done += piece_bytes) step(done, std::min(piece_bytes, length - done));
}

}  // namespace kedge::fs
