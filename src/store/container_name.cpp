#include "store/container_name.hpp"

#include <charconv>

#include "base/text.hpp"

namespace kedge::store {
namespace {

constexpr std::string_view kPrefix = "rank-";
constexpr std::string_view kSuffix = ".h5";

// A number as to_string writes it, taken off the front: "03" is no name that the store would find again.
std::optional<std::uint32_t> take_number(std::string_view& text) noexcept {
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const auto digits = static_cast<std::size_t>(end - text.data());
  if (error != std::errc{} || (digits > 1 && text.front() == '0')) return std::nullopt;
  text.remove_prefix(digits);
  return number;
}

}  // namespace

std::string to_string(const ContainerName& name) {
  return compose("{}{}.{}{}", kPrefix, name.logical_rank.value, name.number, kSuffix);
}

std::optional<ContainerName> parse_container_name(std::string_view name) noexcept {
  if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix)) return std::nullopt;
  if (name.size() < kPrefix.size() + kSuffix.size()) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  name.remove_suffix(kSuffix.size());
  const auto rank = take_number(name);
  if (!rank || !name.starts_with('.')) return std::nullopt;
  name.remove_prefix(1);
  const auto number = take_number(name);
  if (!number || !name.empty()) return std::nullopt;
  return ContainerName{LogicalRank{*rank}, *number};
}

}  // namespace kedge::store
