// Addresses by which ranks reach each other over TCP, and those of this host.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kedge::comm {

/// An address of IPv4 or IPv6.
struct NetworkAddress {
  std::vector<std::uint8_t> bytes;  ///< 4 or 16, in network order
  std::uint16_t port = 0;
};

/// Returns "10.1.2.3" or "[fd00::1]", with the port unless that is 0.
[[nodiscard]] std::string to_string(const NetworkAddress& address);

/// An address as three numbers, for messages between ranks.
using PackedAddress = std::array<std::uint64_t, 3>;
[[nodiscard]] PackedAddress pack_address(const NetworkAddress& address);
/// Returns the address; nothing if the numbers are invalid.
[[nodiscard]] std::optional<NetworkAddress> unpack_address(std::span<const std::uint64_t, 3> packed);

/// An address in the system's form.
struct SystemAddress {
  ::sockaddr_storage storage{};
  ::socklen_t size = 0;
};
[[nodiscard]] SystemAddress to_socket_address(const NetworkAddress& address);
/// Returns the address; nothing if it is of another family.
[[nodiscard]] std::optional<NetworkAddress> from_socket_address(const ::sockaddr& address);

/// An address of an interface that is up.
struct NetworkInterface {
  std::string name;
  NetworkAddress address;
  unsigned prefix_bits = 0;  ///< number of leading bits that are the network's
  bool is_loopback = false;
  unsigned speed_mbit_s = 0;  ///< 0: not known
};
/// Returns addresses of interfaces that are up, IPv4 first; without those that are valid on one link alone. Throws
/// Error{io}.
[[nodiscard]] std::vector<NetworkInterface> list_interfaces();

/// Networks for messages between ranks, best first, each as one word: the name of an interface, a subnet, or both as
/// "NAME@SUBNET", whichever of the two this host has.
using Networks = std::vector<std::string>;

/// Returns the networks of a host without loopback, fastest first: the first that it has is often the slow one by which
/// it is administered. Pure.
[[nodiscard]] Networks networks_of(std::vector<NetworkInterface> interfaces);
/// Returns the address of this host on a network; nothing if it has none. Pure.
[[nodiscard]] std::optional<NetworkAddress> find_address_on(const std::vector<NetworkInterface>& interfaces,
                                                            std::string_view network);

/// Returns a number that differs between processes that cannot reach each other's loopback addresses. Local.
[[nodiscard]] std::uint64_t loopback_id();

}  // namespace kedge::comm
