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
  std::vector<std::uint8_t> address;  ///< 4 or 16 bytes, in network order
  unsigned prefix_bits = 0;           ///< number of leading bits that all its addresses share
};

/// Parses "10.1.0.0/16" or "fd00:1::/64"; returns nothing if the text is invalid. Pure.
[[nodiscard]] std::optional<Subnet> parse_subnet(std::string_view text);
/// Whether an address of 4 or 16 bytes, in network order, lies in the subnet. Pure.
[[nodiscard]] bool contains(const Subnet& subnet, const std::vector<std::uint8_t>& address) noexcept;

/// Parses names of interfaces and subnets, separated by commas: "ib0,10.1.0.0/16". Returns nothing if the text is
/// invalid, and no names for the empty text. Pure.
[[nodiscard]] std::optional<std::vector<std::string>> parse_networks(std::string_view text);

}  // namespace kedge
