#include "base/network.hpp"

#include <arpa/inet.h>

#include <algorithm>

#include "base/options_values.hpp"

namespace kedge {
namespace {

constexpr std::size_t kNameMax = 15;

/// Linux's rule for interface names: longer ones cannot exist, and `/`, `:` and `@` are for other things.
bool is_interface_name(std::string_view name) {
  return !name.empty() && name.size() <= kNameMax && std::ranges::all_of(name, [](char c) {
    return c > ' ' && c <= '~' && c != '/' && c != ':' && c != '@' && c != '"';
  });
}

}  // namespace

std::optional<Subnet> parse_subnet(std::string_view text) {
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  const std::string address(text.substr(0, slash));
  const auto prefix = parse_number<unsigned>(text.substr(slash + 1));
  const bool is_v6 = address.find(':') != std::string::npos;
  Subnet subnet{std::vector<std::uint8_t>(is_v6 ? 16 : 4), prefix.value_or(0)};
  if (::inet_pton(is_v6 ? AF_INET6 : AF_INET, address.c_str(), subnet.address.data()) != 1) return std::nullopt;
  if (!prefix || *prefix > subnet.address.size() * 8) return std::nullopt;
  return subnet;
}

bool contains(const Subnet& subnet, const std::vector<std::uint8_t>& address) noexcept {
  if (address.size() != subnet.address.size()) return false;
  for (unsigned bit = 0; bit < subnet.prefix_bits; ++bit) {
    const unsigned mask = 0x80U >> (bit % 8);
    if (((address[bit / 8] ^ subnet.address[bit / 8]) & mask) != 0) return false;
  }
  return true;
}

std::optional<std::vector<std::string>> parse_networks(std::string_view text) {
  std::vector<std::string> networks;
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    const std::string_view part = text.substr(0, comma);
    if (!is_interface_name(part) && !parse_subnet(part)) return std::nullopt;
    networks.emplace_back(part);
    if (comma == std::string_view::npos) break;
    text.remove_prefix(comma + 1);
    if (text.empty()) return std::nullopt;
  }
  return networks;
}

}  // namespace kedge
