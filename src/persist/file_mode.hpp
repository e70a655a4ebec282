// Bits of a file's mode, which say who can change it.
#pragma once

#include <cstdint>

namespace kedge::persist {

inline constexpr std::uint32_t kGroupWrites = 0020;
inline constexpr std::uint32_t kOthersWrite = 0002;
inline constexpr std::uint32_t kGroupOrOthersWrite = kGroupWrites | kOthersWrite;
inline constexpr std::uint32_t kSticky = 01000;

}  // namespace kedge::persist
