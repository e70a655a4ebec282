// TCP sockets: not inherited by started programs, non-blocking, and without signals.
#pragma once

#include <cstddef>
#include <span>
#include <utility>

#include "comm/sockets/network_address.hpp"

namespace kedge::comm {

/// Owns a descriptor.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int descriptor) noexcept : descriptor_(descriptor) {}
  Socket(Socket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  ~Socket() { close(); }

  [[nodiscard]] int descriptor() const noexcept { return descriptor_; }
  [[nodiscard]] bool is_open() const noexcept { return descriptor_ >= 0; }
  void close() noexcept;
  /// Ends the connection for all processes that have this socket, also for a forked child.
  void shut_down() const noexcept;

 private:
  int descriptor_ = -1;
};

/// Result of a send or receive of some bytes.
struct TransferResult {
  std::size_t bytes = 0;
  bool has_ended = false;  ///< no more bytes will come or go
  int error = 0;           ///< errno, if that is why
};

[[nodiscard]] TransferResult receive_some(const Socket& socket, std::span<std::byte> target) noexcept;
/// Sends the first bytes of two spans, one after the other.
[[nodiscard]] TransferResult send_some(const Socket& socket, std::span<const std::byte> first,
                                       std::span<const std::byte> second) noexcept;

/// Listens at a port that the system chooses. Throws Error{io}. Local.
[[nodiscard]] Socket listen_at(const NetworkAddress& address);
/// Returns the address at which it listens, with its port.
[[nodiscard]] NetworkAddress listening_address(const Socket& listener);

/// A connection that was accepted, or why there is none: none waits if `error` is 0.
struct AcceptedConnection {
  Socket socket;
  int error = 0;
};
[[nodiscard]] AcceptedConnection accept_connection(const Socket& listener) noexcept;

/// Begins to connect; pending_error() has the result once the socket is writable. Throws std::system_error.
[[nodiscard]] Socket connect_to(const NetworkAddress& address);
/// Returns the socket's pending error; 0 if there is none.
[[nodiscard]] int pending_error(const Socket& socket) noexcept;

}  // namespace kedge::comm
