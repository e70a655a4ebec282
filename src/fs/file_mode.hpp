// Permission bits: who may read, change or replace a file.
#pragma once

#include <cstdint>

namespace kedge::fs {

inline constexpr std::uint32_t kGroupWrites = 0020;
inline constexpr std::uint32_t kOthersWrite = 0002;
inline constexpr std::uint32_t kGroupOrOthersWrite = kGroupWrites | kOthersWrite;
inline constexpr std::uint32_t kGroupOrOthersAnything = 077;
inline constexpr std::uint32_t kSticky = 01000;  ///< only the owner may remove a file in such a directory

}  // namespace kedge::fs
