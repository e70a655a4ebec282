#include "comm/sockets/socket.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>

#include "base/text.hpp"
#include "kedge/error.hpp"

namespace kedge::comm {
namespace {

constexpr int kKind = SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC;

void set_socket_option(const Socket& socket, int level, int option, int value = 1) noexcept {
  (void)::setsockopt(socket.descriptor(), level, option, &value, sizeof value);
}

/// A connection that is idle for hours must not be forgotten by what lies between.
void set_buffer_sizes(const Socket& socket) noexcept {
  constexpr int kIdleS = 60;
  set_socket_option(socket, IPPROTO_TCP, TCP_NODELAY);
  set_socket_option(socket, SOL_SOCKET, SO_KEEPALIVE);
  set_socket_option(socket, IPPROTO_TCP, TCP_KEEPIDLE, kIdleS);
}

TransferResult to_transfer_result(ssize_t result, bool nothing_is_the_end) noexcept {
  if (result > 0) return {static_cast<std::size_t>(result), false, 0};
  if (result == 0) return {0, nothing_is_the_end, 0};
  if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) return {};
  return {0, true, errno};
}

void touch_pages(std::span<const std::byte> bytes) noexcept {
  constexpr std::size_t kPageBytesMin = 4096;
  for (std::size_t at = 0; at < bytes.size(); at += kPageBytesMin) {
    static_cast<void>(*static_cast<const volatile std::byte*>(bytes.data() + at));
  }
  if (!bytes.empty()) static_cast<void>(*static_cast<const volatile std::byte*>(&bytes.back()));
}

}  // namespace

void Socket::close() noexcept {
  if (is_open()) ::close(std::exchange(descriptor_, -1));
}

void Socket::shut_down() const noexcept {
  if (is_open()) (void)::shutdown(descriptor_, SHUT_RDWR);
}

TransferResult receive_some(const Socket& socket, std::span<std::byte> target) noexcept {
  return to_transfer_result(::recv(socket.descriptor(), target.data(), target.size(), 0), true);
}

TransferResult send_some(const Socket& socket, std::span<const std::byte> first,
                         std::span<const std::byte> second) noexcept {
  const auto part = [](std::span<const std::byte> bytes) {
    return ::iovec{const_cast<std::byte*>(bytes.data()), bytes.size()};  // sendmsg only reads
  };
  std::array parts{part(first), part(second)};
  ::msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = parts.size();
  ssize_t sent = ::sendmsg(socket.descriptor(), &message, MSG_NOSIGNAL);
  if (sent < 0 && errno == EFAULT) {
    // Memory of a mapped file that was truncated: touched, it is zeros, and who sends it will hear of that.
    touch_pages(first);
    touch_pages(second);
    sent = ::sendmsg(socket.descriptor(), &message, MSG_NOSIGNAL);
  }
  return to_transfer_result(sent, false);
}

Socket listen_at(const NetworkAddress& address) {
  const SystemAddress at = to_socket_address(address);
  Socket socket(::socket(at.storage.ss_family, kKind, 0));
  if (!socket.is_open() ||
      ::bind(socket.descriptor(), reinterpret_cast<const ::sockaddr*>(&at.storage), at.size) != 0 ||
      ::listen(socket.descriptor(), SOMAXCONN) != 0) {
    throw Error(
        Failure{ErrorCode::io, compose("cannot listen at {} for the other ranks", to_string(address)), -1, {}, errno});
  }
  return socket;
}

NetworkAddress listening_address(const Socket& listener) {
  SystemAddress at;
  at.size = sizeof at.storage;
  if (::getsockname(listener.descriptor(), reinterpret_cast<::sockaddr*>(&at.storage), &at.size) != 0) {
    throw Error(Failure{ErrorCode::io, "cannot query a socket's address", -1, {}, errno});
  }
  return from_socket_address(*reinterpret_cast<const ::sockaddr*>(&at.storage)).value_or(NetworkAddress{});
}

AcceptedConnection accept_connection(const Socket& listener) noexcept {
  AcceptedConnection accepted{Socket(::accept4(listener.descriptor(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC)),
                              0};
  if (accepted.socket.is_open()) set_buffer_sizes(accepted.socket);
  else if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR && errno != ECONNABORTED) accepted.error = errno;
  return accepted;
}

Socket connect_to(const NetworkAddress& address) {
  const SystemAddress at = to_socket_address(address);
  Socket socket(::socket(at.storage.ss_family, kKind, 0));
  if (!socket.is_open()) throw std::system_error(errno, std::generic_category());
  set_buffer_sizes(socket);
  if (::connect(socket.descriptor(), reinterpret_cast<const ::sockaddr*>(&at.storage), at.size) != 0 &&
      errno != EINPROGRESS && errno != EINTR) {
    throw std::system_error(errno, std::generic_category());
  }
  return socket;
}

int pending_error(const Socket& socket) noexcept {
  int error = 0;
  ::socklen_t size = sizeof error;
  if (::getsockopt(socket.descriptor(), SOL_SOCKET, SO_ERROR, &error, &size) != 0) return errno;
  return error;
}

}  // namespace kedge::comm
