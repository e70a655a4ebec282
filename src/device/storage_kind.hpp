// Which kinds of storage a file may be on, as cuFile counts them.
#pragma once

#include <string>
#include <vector>

namespace kedge::device {

/// Bits of CuFileProperties::status_flags, of which one is set if cuFile reaches this file natively; 0: it never does.
[[nodiscard]] unsigned storage_kinds(int descriptor);

/// Kinds of storage by `type` of statfs, and the directories in /sys of the block devices that a local filesystem is
/// on.
[[nodiscard]] unsigned storage_kinds(long type, const std::vector<std::string>& devices);

}  // namespace kedge::device
