// Permissions of new files on a prefix, and the error for a name that is taken.
#pragma once

#include <cstdint>
#include <string>

namespace kedge::persist {

/// Bits of persistent.mode that apply to files.
inline constexpr std::uint32_t kFileBits = 0666;

/// Returns the bits of a mode such as "0755". Pure.
[[nodiscard]] std::uint32_t parse_mode(const std::string& octal) noexcept;

/// Throws Error{io}: another process made this name below a tag directory of this start.
[[noreturn]] void throw_name_taken(const std::string& path);

}  // namespace kedge::persist
