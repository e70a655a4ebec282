// Which kinds of storage a file may be on, in cuFile's numbering.
#pragma once

#include <string>
#include <vector>

namespace kedge::device {

/// Bits of CuFileProperties::status_flags; cuFile reaches the file natively if one of them is set there. 0 if it never
/// does.
[[nodiscard]] unsigned storage_kinds(int descriptor);

/// Kinds of storage from statfs's `type` and the /sys directories of a local filesystem's block devices.
[[nodiscard]] unsigned storage_kinds(long type, const std::vector<std::string>& devices);

}  // namespace kedge::device
