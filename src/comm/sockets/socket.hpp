// Sockets of TCP as file descriptors: never inherited by programs that are started, never blocking, never a signal.
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
  /// Ends the connection for all that have this socket, a child of a fork too.
  void shut_down() const noexcept;

 private:
  int descriptor_ = -1;
};

/// Result of an attempt to move bytes.
struct TransferResult {
  std::size_t bytes = 0;
  bool ended = false;  ///< no more will come or go
  int error = 0;       ///< errno, if that is why
};

[[nodiscard]] TransferResult receive_some(const Socket& socket, std::span<std::byte> target) noexcept;
/// Sends the first bytes of the two spans, one after the other.
[[nodiscard]] TransferResult send_some(const Socket& socket, std::span<const std::byte> first,
                                       std::span<const std::byte> second) noexcept;

/// Local. Listens at a port that the system chooses. Throws Error{io}.
[[nodiscard]] Socket listen_at(const NetworkAddress& address);
/// The address with the port that it listens at.
[[nodiscard]] NetworkAddress address_of(const Socket& listener);

/// A connection that was taken from those that wait, or why there is none: nothing waits, if `error` is 0.
struct Accepted {
  Socket socket;
  int error = 0;
};
[[nodiscard]] Accepted accept_one(const Socket& listener) noexcept;

/// Begins to connect; error_of() says what came of it, once the socket can be written to. Throws std::system_error.
[[nodiscard]] Socket connect_to(const NetworkAddress& address);
/// The error that waits at a socket; 0 if none does.
[[nodiscard]] int error_of(const Socket& socket) noexcept;

}  // namespace kedge::comm
