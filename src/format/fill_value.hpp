// Fill values: a reader of a global array gets them where a container is missing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "kedge/types.hpp"

namespace kedge::format {

/// One element, little-endian as in the file, that nobody takes for data: NaN (complex: in both parts), the least
/// signed and the greatest unsigned integer, and bytes of 0xff for booleans (neither FALSE nor TRUE) and opaque.
[[nodiscard]] std::vector<std::byte> fill_value(DataType dtype);

/// One struct of so many bytes (members.hpp) with that in every member, and zeros between them.
[[nodiscard]] std::vector<std::byte> fill_value(std::string_view members, std::uint64_t struct_bytes);

}  // namespace kedge::format
