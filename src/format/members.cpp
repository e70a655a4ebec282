#include "format/members.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <set>

#include "base/options_values.hpp"
#include "base/text.hpp"
#include "format/on_disk.hpp"

namespace kedge::format {
namespace {

constexpr std::size_t kMemberNameBytesMax = 63;

bool is_member_name(std::string_view name) {
  const auto permitted = [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  };
  return !name.empty() && name.size() <= kMemberNameBytesMax && std::ranges::all_of(name, permitted);
}

std::optional<DataType> dtype_of(std::string_view name) {
  for (int number = static_cast<int>(DataType::int8); number <= static_cast<int>(kLastDataType); ++number) {
    if (to_string(static_cast<DataType>(number)) == name) return static_cast<DataType>(number);
  }
  return std::nullopt;
}

/// Parses the whole text, which must be in canonical form.
std::optional<std::uint64_t> number_of(std::string_view text) {
  if (text.size() > 1 && text.front() == '0') return std::nullopt;
  return parse_number<std::uint64_t>(text);
}

/// Parses extents such as "3,4".
std::optional<Shape> shape_of(std::string_view text) {
  std::array<std::uint64_t, Shape::kMaxDimensions> extents{};
  for (std::size_t dimensions = 0; dimensions < extents.size();) {
    const std::size_t comma = text.find(',');
    const auto extent = number_of(text.substr(0, comma));
    if (!extent || *extent == 0) return std::nullopt;
    extents.at(dimensions++) = *extent;
    if (comma == std::string_view::npos) return Shape(std::span(extents).first(dimensions));
    text.remove_prefix(comma + 1);
  }
  return std::nullopt;
}

std::optional<Member> member_of(std::string_view text) {
  const std::size_t colon = text.find(':');
  const std::size_t at = text.rfind('@');
  if (colon == std::string_view::npos || at == std::string_view::npos || at < colon) return std::nullopt;
  Member member;
  member.name = text.substr(0, colon);
  const auto offset = number_of(text.substr(at + 1));
  std::string_view type = text.substr(colon + 1, at - colon - 1);
  if (type.ends_with(']')) {
    const std::size_t bracket = type.find('[');
    if (bracket == std::string_view::npos) return std::nullopt;
    const auto shape = shape_of(type.substr(bracket + 1, type.size() - bracket - 2));
    if (!shape) return std::nullopt;
    member.shape = *shape;
    type = type.substr(0, bracket);
  }
  const auto dtype = dtype_of(type);
  if (!dtype || !offset || !is_member_name(member.name)) return std::nullopt;
  member.dtype = *dtype;
  member.offset = *offset;
  return member;
}

template <class Visit>
void for_each_part(std::string_view text, Visit&& visit) {
  while (true) {
    const std::size_t end = text.find(';');
    visit(text.substr(0, end));
    if (end == std::string_view::npos) return;
    text.remove_prefix(end + 1);
  }
}

}  // namespace

std::string check_members(std::string_view text, std::uint64_t struct_bytes) {
  if (text.size() > kMembersBytesMax) {
    return kedge::compose("the description of its members is longer than {} bytes", kMembersBytesMax);
  }
  std::string problem;
  std::set<std::string> names;
  std::uint64_t end = 0;
  for_each_part(text, [&](std::string_view part) {
    if (!problem.empty()) return;
    const auto member = member_of(part);
    std::uint64_t count = 0;
    if (!member) {
      problem = kedge::compose("'{}' does not describe a member", part);
    } else if (!names.insert(member->name).second) {
      problem = kedge::compose("two members have the name '{}'", member->name);
    } else if (!element_count(member->shape, count) || count > struct_bytes || member->offset < end ||
               member->offset > struct_bytes ||
               count * kedge::size_bytes(member->dtype) > struct_bytes - member->offset) {
      problem =
          kedge::compose("member '{}' overlaps the one before it, is out of order, or exceeds the struct's {} bytes",
                         member->name, struct_bytes);
    } else {
      end = member->offset + count * kedge::size_bytes(member->dtype);
    }
  });
  return problem;
}

std::vector<Member> parse_members(std::string_view text) {
  std::vector<Member> members;
  for_each_part(text, [&](std::string_view part) {
    if (auto member = member_of(part)) members.push_back(*std::move(member));
  });
  return members;
}

}  // namespace kedge::format
