// The members of a struct, as text in an index: "name:dtype[extents]@offset", in order of offsets.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kedge/types.hpp"

namespace kedge::format {

struct Member {
  std::string name;
  DataType dtype = DataType::opaque;
  Shape shape;  ///< without dimensions for a single value
  std::uint64_t offset = 0;
  bool operator==(const Member&) const = default;
};

/// Returns why the text cannot describe a struct of `struct_bytes` bytes; empty if it can. Names have 1 to 63
/// characters of A-Z a-z 0-9 _ and occur once; members lie inside the struct and do not overlap.
[[nodiscard]] std::string check_members(std::string_view text, std::uint64_t struct_bytes);

/// Parses a text for which check_members() is empty.
[[nodiscard]] std::vector<Member> parse_members(std::string_view text);

}  // namespace kedge::format
