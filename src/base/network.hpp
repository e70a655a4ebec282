// Networks as options name them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kedge {

/// A range of addresses in CIDR notation, of IPv4 (4 bytes) or IPv6 (16 bytes).
struct Subnet {
  std::vector<std::uint8_t> address;  ///< in network order
  unsigned prefix = 0;                ///< how many of its first bits all addresses of it share
};

/// Pure. "10.1.0.0/16", "fd00:1::/64". Nothing if the text is anything else.
[[nodiscard]] std::optional<Subnet> parse_subnet(std::string_view text);
/// Pure. Whether the address, of 4 or 16 bytes in network order, lies in it.
[[nodiscard]] bool contains(const Subnet& subnet, const std::vector<std::uint8_t>& address) noexcept;

/// Pure. Names of interfaces and subnets, with commas between: "ib0,10.1.0.0/16". Nothing if the text is anything else;
/// empty for the empty text.
[[nodiscard]] std::optional<std::vector<std::string>> parse_networks(std::string_view text);

}  // namespace kedge
