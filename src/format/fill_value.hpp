// Fill values, which a reader of a global array gets for missing containers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "kedge/types.hpp"

namespace kedge::format {

/// One little-endian element that cannot be mistaken for data: NaN (in both parts of a complex number), the least
/// signed or greatest unsigned integer, and bytes of 0xff for booleans (neither FALSE nor TRUE) and opaque.
[[nodiscard]] std::vector<std::byte> fill_value(DataType dtype);

/// One struct of `struct_bytes` bytes with a fill value in each member and zeros as padding.
[[nodiscard]] std::vector<std::byte> fill_value(std::string_view members, std::uint64_t struct_bytes);

}  // namespace kedge::format
