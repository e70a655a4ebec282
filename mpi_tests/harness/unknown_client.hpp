// Programs that connect to a rank without being one.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <thread>

#include "comm/sockets/frame.hpp"
#include "comm/sockets/socket.hpp"
#include "kedge/communicator.hpp"

namespace kedge::testing {

/// Says what it is told to.
class UnknownClient {
 public:
  explicit UnknownClient(const comm::NetworkAddress& address) : socket_(comm::connect_to(address)) {}

  template <class Value>
  void say(const Value& value) {
    say(std::as_bytes(std::span(&value, 1)));
  }
  void say(std::span<const std::byte> bytes) {
    const auto deadline = Deadline::after(std::chrono::seconds(20));
    while (!bytes.empty() && !deadline.passed()) {
      const comm::TransferResult moved = comm::send_some(socket_, bytes, {});
      if (moved.has_ended) return;
      bytes = bytes.subspan(moved.bytes);
    }
  }
  /// Whether it is closed in time, whatever comes before.
  [[nodiscard]] bool is_closed(Deadline deadline) {
    std::array<std::byte, 64> bytes{};
    while (!deadline.passed()) {
      if (comm::receive_some(socket_, bytes).has_ended) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return false;
  }
  [[nodiscard]] bool is_welcomed(Deadline deadline) {
    std::array<std::byte, sizeof(comm::Welcome)> bytes{};
    while (!deadline.passed()) {
      const comm::TransferResult moved = comm::receive_some(socket_, bytes);
      if (moved.bytes == bytes.size()) return true;
      if (moved.has_ended) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return false;
  }

 private:
  comm::Socket socket_;
};

/// With which a rank connects to another one.
inline comm::Greeting greeting(const Id128& token, std::uint32_t from, std::uint32_t to) {
  return {comm::kGreetingMagic, token, from, to};
}

}  // namespace kedge::testing
