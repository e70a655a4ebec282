// Where a rank can be reached by TCP, and which addresses this host has.
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

/// "10.1.2.3" or "[fd00::1]", with its port unless that is 0.
[[nodiscard]] std::string to_string(const NetworkAddress& address);

/// An address as three numbers, for ranks to send each other.
using PackedAddress = std::array<std::uint64_t, 3>;
[[nodiscard]] PackedAddress pack(const NetworkAddress& address);
/// Nothing if these can be none.
[[nodiscard]] std::optional<NetworkAddress> unpack(std::span<const std::uint64_t, 3> packed);

/// An address in the system's form.
struct SystemAddress {
  ::sockaddr_storage storage{};
  ::socklen_t size = 0;
};
[[nodiscard]] SystemAddress to_system(const NetworkAddress& address);
/// Nothing if it is of another family.
[[nodiscard]] std::optional<NetworkAddress> from_system(const ::sockaddr& address);

/// An address of an interface that is up.
struct Interface {
  std::string name;
  NetworkAddress address;
  unsigned prefix = 0;  ///< how many bits of it are those of its network
  bool is_loopback = false;
  unsigned speed_mbit_s = 0;  ///< 0: not known
};
/// Local. Interfaces that are up, those of IPv4 first; none whose address is valid on one link alone. Throws Error{io}.
[[nodiscard]] std::vector<Interface> interfaces();

/// Networks that ranks may meet on, each as one word: the name of an interface, a subnet, or both as "NAME@SUBNET",
/// whatever of the two this host has. The one to be tried first is the first.
using Networks = std::vector<std::string>;

/// Pure. Networks of a host, without loopback: the fastest first, as a job's data would else go through the network
/// that a node is administered by, which is often the first that it has.
[[nodiscard]] Networks networks_of(std::vector<Interface> interfaces);
/// Pure. The address of this host on a network; nothing if it has none.
[[nodiscard]] std::optional<NetworkAddress> address_on(const std::vector<Interface>& interfaces,
                                                       std::string_view network);

/// Local. Different for processes that cannot reach each other's loopback addresses.
[[nodiscard]] std::uint64_t loopback_id();

}  // namespace kedge::comm
