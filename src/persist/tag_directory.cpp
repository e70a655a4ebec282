#include "persist/tag_directory.hpp"

#include <algorithm>

#include "base/options_values.hpp"
#include "base/text.hpp"
#include "commits/head_check.hpp"

namespace kedge::persist {
namespace {

constexpr std::size_t kIdDigits = 8;

bool is_hex(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

// As compose() writes it: no sign, no zeros in front.
std::optional<std::uint64_t> parse_plain_number(std::string_view text) {
  if (text.size() > 1 && text.front() == '0') return std::nullopt;
  return parse_number<std::uint64_t>(text);
}

}  // namespace

std::string tag_directory_name(const CommitHead& commit) {
  return compose("{}.{}-{}", commit.tag, commit.generation, to_string(commit.id).substr(0, kIdDigits));
}

// From the back: the tag may have dots, dashes and digits of its own.
std::optional<TagDirectory> parse_tag_directory_name(std::string_view name) {
  const std::size_t dash = name.rfind('-');
  if (dash == std::string_view::npos) return std::nullopt;
  const std::string_view digits = name.substr(dash + 1);
  const std::size_t dot = name.substr(0, dash).rfind('.');
  if (dot == std::string_view::npos || digits.size() != kIdDigits || !is_hex(digits)) return std::nullopt;
  const std::string_view tag = name.substr(0, dot);
  const auto generation = parse_plain_number(name.substr(dot + 1, dash - dot - 1));
  if (!generation || !commits::is_tag(tag)) return std::nullopt;
  return TagDirectory{std::string(tag), *generation, std::string(digits)};
}

std::string container_directory(LogicalRank logical_rank) {
  return compose("{}/{}", kDataDirectory, logical_rank.value / kContainersPerDirectory);
}

std::string plain_directory(LogicalRank logical_rank) {
  return compose("{}/{}/rank-{}", kPlainDirectory, logical_rank.value / kContainersPerDirectory, logical_rank.value);
}

std::optional<LogicalRank> rank_of_plain_directory(std::string_view directory_name) {
  constexpr std::string_view kBegin = "rank-";
  if (!directory_name.starts_with(kBegin)) return std::nullopt;
  const auto number = parse_plain_number(directory_name.substr(kBegin.size()));
  if (!number || *number >= commits::kWorldSizeMax) return std::nullopt;
  return LogicalRank{static_cast<std::uint32_t>(*number)};
}

std::optional<LogicalRank> rank_of_container(std::string_view file_name) {
  constexpr std::string_view kEnd = ".h5";
  if (!file_name.ends_with(kEnd)) return std::nullopt;
  return rank_of_plain_directory(file_name.substr(0, file_name.size() - kEnd.size()));
}

std::string container_file(LogicalRank logical_rank) {
  return compose("{}/rank-{}.h5", container_directory(logical_rank), logical_rank.value);
}

}  // namespace kedge::persist
