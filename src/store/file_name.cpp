#include "store/file_name.hpp"

#include <array>
#include <charconv>

#include "base/text.hpp"

namespace kedge::store {
namespace {

struct Pattern {
  FileKind kind;
  std::string_view prefix;
  std::string_view suffix;
};

constexpr std::array kPatterns{
    Pattern{FileKind::container, "rank-", ".h5"}, Pattern{FileKind::parity, "parity-", ".kedge"},
    Pattern{FileKind::descriptor, "set-", ".kedge"}, Pattern{FileKind::manifest, "master-", ".h5"}};
static_assert(kPatterns.size() == kFileKindCount);

// Takes a number in canonical form off the front: "03" would not be found again under its name.
std::optional<std::uint32_t> take_number(std::string_view& text) noexcept {
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const auto digits = static_cast<std::size_t>(end - text.data());
  if (error != std::errc{} || (digits > 1 && text.front() == '0')) return std::nullopt;
  text.remove_prefix(digits);
  return number;
}

std::optional<FileName> parse_as(const Pattern& pattern, std::string_view name) noexcept {
  if (!name.starts_with(pattern.prefix) || !name.ends_with(pattern.suffix)) return std::nullopt;
  if (name.size() < pattern.prefix.size() + pattern.suffix.size()) return std::nullopt;
  name.remove_prefix(pattern.prefix.size());
  name.remove_suffix(pattern.suffix.size());
  const auto rank = take_number(name);
  if (!rank || !name.starts_with('.')) return std::nullopt;
  name.remove_prefix(1);
  const auto number = take_number(name);
  if (!number || !name.empty()) return std::nullopt;
  return FileName{pattern.kind, LogicalRank{*rank}, *number};
}

}  // namespace

std::string to_string(const FileName& name) {
  const Pattern& pattern = kPatterns.at(static_cast<std::size_t>(name.kind));
  return compose("{}{}.{}{}", pattern.prefix, name.logical_rank.value, name.number, pattern.suffix);
}

bool is_store_file(std::string_view name) noexcept {
  const auto is_record = [&](std::string_view record) {
    return name.starts_with(record) &&
           (name.size() == record.size() || name.substr(record.size()).starts_with(".new-"));
  };
  return parse_file_name(name) || is_record(kRunRecord) || is_record(kCommitRecord) || is_record(kFlushRecord) ||
         is_record(kDamageRecord) || name.starts_with(kLockPrefix) || name.starts_with(kNoncePrefix) ||
         name.starts_with(kReservationPrefix) || name.starts_with(kRoutedPrefix) || name.starts_with(kJobPrefix);
}

std::optional<FileName> parse_file_name(std::string_view name) noexcept {
  for (const Pattern& pattern : kPatterns) {
    if (const auto parsed = parse_as(pattern, name)) return parsed;
  }
  return std::nullopt;
}

}  // namespace kedge::store
