// Files that are made on a prefix: their permissions, and what is said if a name is taken.
#pragma once

#include <cstdint>
#include <string>

namespace kedge::persist {

/// Bits of persistent.mode that files get.
inline constexpr std::uint32_t kFileBits = 0666;

/// Pure. "0755" as bits.
[[nodiscard]] std::uint32_t mode_bits(const std::string& octal) noexcept;

/// Throws Error{io}: a name below a tag directory of this start is somebody else's.
[[noreturn]] void throw_name_taken(const std::string& path);

}  // namespace kedge::persist
