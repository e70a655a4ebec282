#include "comm/sockets/network_address.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <functional>
#include <memory>

#include "base/hash.hpp"
#include "base/network.hpp"
#include "base/random.hpp"
#include "base/text.hpp"
#include "kedge/error.hpp"

namespace kedge::comm {
namespace {

constexpr std::size_t kV4Bytes = 4;
constexpr std::size_t kV6Bytes = 16;

std::string address_text(const std::vector<std::uint8_t>& bytes) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const int family = bytes.size() == kV6Bytes ? AF_INET6 : AF_INET;
  if (bytes.empty() || ::inet_ntop(family, bytes.data(), text.data(), text.size()) == nullptr) return "no address";
  return text.data();
}

unsigned prefix_bits_of(const ::sockaddr* mask) {
  if (mask == nullptr) return 0;
  unsigned bits = 0;
  if (const auto address = from_socket_address(*mask)) {
    for (const std::uint8_t byte : address->bytes) bits += static_cast<unsigned>(std::popcount(byte));
  }
  return bits;
}

/// fe80::/10 and 169.254.0.0/16, which need to be told the interface, or are what a host has that got none.
bool is_link_local(const NetworkAddress& address) {
  const auto& bytes = address.bytes;
  if (bytes.size() == kV6Bytes) return bytes[0] == 0xfe && (bytes[1] & 0xc0U) == 0x80;
  return bytes[0] == 169 && bytes[1] == 254;
}

std::optional<NetworkAddress> find_address_in_subnet(const std::vector<NetworkInterface>& interfaces,
                                                     std::string_view text) {
  const auto subnet = parse_subnet(text);
  if (!subnet) return std::nullopt;
  const auto found = std::ranges::find_if(
      interfaces, [&](const NetworkInterface& one) { return contains(*subnet, one.address.bytes); });
  return found == interfaces.end() ? std::nullopt : std::optional(found->address);
}

/// Speed of hardware and of bonds of it, as the system reports it; other devices (bridges of containers, tunnels)
/// report arbitrary ones. InfiniBand, of which it may report none, has at least 10 Gbit/s.
unsigned interface_speed(const std::string& name) {
  constexpr unsigned kInfiniBandMbit_s = 10'000;
  const std::string directory = "/sys/class/net/" + name + "/";
  if (::access((directory + "device").c_str(), F_OK) != 0 && ::access((directory + "bonding").c_str(), F_OK) != 0) {
    return 0;
  }
  long speed_mbit_s = 0;
  if (std::ifstream(directory + "speed") >> speed_mbit_s && speed_mbit_s > 0) {
    return static_cast<unsigned>(speed_mbit_s);
  }
  int type = 0;
  std::ifstream(directory + "type") >> type;
  return type == ARPHRD_INFINIBAND ? kInfiniBandMbit_s : 0;
}

}  // namespace

std::string to_string(const NetworkAddress& address) {
  const std::string text = address_text(address.bytes);
  const std::string host = address.bytes.size() == kV6Bytes ? compose("[{}]", text) : text;
  return address.port == 0 ? host : compose("{} port {}", host, address.port);
}

PackedAddress pack_address(const NetworkAddress& address) {
  PackedAddress packed{};
  if (!address.bytes.empty()) std::memcpy(packed.data(), address.bytes.data(), address.bytes.size());
  packed[2] = address.bytes.size() << 16U | address.port;
  return packed;
}

std::optional<NetworkAddress> unpack_address(std::span<const std::uint64_t, 3> packed) {
  const std::uint64_t size = packed[2] >> 16U;
  if (size != kV4Bytes && size != kV6Bytes) return std::nullopt;
  NetworkAddress address{std::vector<std::uint8_t>(size), static_cast<std::uint16_t>(packed[2] & 0xffffU)};
  std::memcpy(address.bytes.data(), packed.data(), size);
  return address;
}

SystemAddress to_socket_address(const NetworkAddress& address) {
  SystemAddress system;
  if (address.bytes.size() == kV6Bytes) {
    ::sockaddr_in6 v6{};
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(address.port);
    std::memcpy(&v6.sin6_addr, address.bytes.data(), kV6Bytes);
    std::memcpy(&system.storage, &v6, system.size = sizeof v6);
  } else {
    ::sockaddr_in v4{};
    v4.sin_family = AF_INET;
    v4.sin_port = htons(address.port);
    if (address.bytes.size() == kV4Bytes) std::memcpy(&v4.sin_addr, address.bytes.data(), kV4Bytes);
    std::memcpy(&system.storage, &v4, system.size = sizeof v4);
  }
  return system;
}

std::optional<NetworkAddress> from_socket_address(const ::sockaddr& address) {
  NetworkAddress found;
  const auto take = [&](const void* bytes, std::size_t size, std::uint16_t port) {
    found.bytes.resize(size);
    std::memcpy(found.bytes.data(), bytes, size);
    found.port = ntohs(port);
    return found;
  };
  if (address.sa_family == AF_INET) {
    ::sockaddr_in v4{};
    std::memcpy(&v4, &address, sizeof v4);
    return take(&v4.sin_addr, kV4Bytes, v4.sin_port);
  }
  if (address.sa_family == AF_INET6) {
    ::sockaddr_in6 v6{};
    std::memcpy(&v6, &address, sizeof v6);
    return take(&v6.sin6_addr, kV6Bytes, v6.sin6_port);
  }
  return std::nullopt;
}

std::vector<NetworkInterface> list_interfaces() {
  ::ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) {
    throw Error(Failure{ErrorCode::io, "cannot list the network interfaces", -1, {}, errno});
  }
  const std::unique_ptr<::ifaddrs, void (*)(::ifaddrs*)> owner(list, ::freeifaddrs);
  std::vector<NetworkInterface> found;
  for (const ::ifaddrs* one = list; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || (one->ifa_flags & IFF_UP) == 0) continue;
    auto address = from_socket_address(*one->ifa_addr);
    if (!address || is_link_local(*address)) continue;
    NetworkInterface& interface = found.emplace_back();
    interface.name = one->ifa_name;
    interface.address = *std::move(address);
    interface.address.port = 0;
    interface.prefix_bits = prefix_bits_of(one->ifa_netmask);
    interface.is_loopback = (one->ifa_flags & IFF_LOOPBACK) != 0;
    interface.speed_mbit_s = interface_speed(interface.name);
  }
  std::ranges::stable_sort(found, {}, [](const NetworkInterface& one) { return one.address.bytes.size(); });
  return found;
}

Networks networks_of(std::vector<NetworkInterface> interfaces) {
  std::ranges::stable_sort(interfaces, std::greater(), &NetworkInterface::speed_mbit_s);
  Networks networks;
  for (const NetworkInterface& one : interfaces) {
    if (one.is_loopback) continue;
    networks.push_back(compose("{}@{}/{}", one.name, address_text(one.address.bytes), one.prefix_bits));
  }
  return networks;
}

std::optional<NetworkAddress> find_address_on(const std::vector<NetworkInterface>& interfaces,
                                              std::string_view network) {
  const std::size_t at = network.find('@');
  const std::string_view subnet = at == std::string_view::npos ? network : network.substr(at + 1);
  if (auto address = find_address_in_subnet(interfaces, subnet)) return address;
  const auto found = std::ranges::find(interfaces, network.substr(0, at), &NetworkInterface::name);
  return found == interfaces.end() ? std::nullopt : std::optional(found->address);
}

/// An id of this kernel and network namespace.
std::uint64_t loopback_id() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  std::array<char, 64> space{};
  const ssize_t size = ::readlink("/proc/self/ns/net", space.data(), space.size());
  if (boot.empty() || size <= 0) {
    std::uint64_t different = 0;
    std::memcpy(&different, random_id().bytes.data(), sizeof different);
    return different;
  }
  return fnv1a(boot + std::string(space.data(), static_cast<std::size_t>(size)));
}

}  // namespace kedge::comm
