// The copy that a checkpoint consists of: once through the core, with the checksum taken on the way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace kedge::fs {

/// How many bytes one store moves: what every x86-64 processor has, or AVX2. Without either it does not matter.
enum class StoreWidth { bytes_16, bytes_32 };

/// The widest that this processor has.
[[nodiscard]] StoreWidth widest_stores() noexcept;

/// Copies `from` to `to`, which do not overlap, and continues `crc` with the CRC32C of what was copied. Large copies go
/// past the caches: what is written is not read again soon, and its old content need not be fetched. Other threads see
/// the bytes as after any copy.
[[nodiscard]] std::uint32_t stream_copy(std::byte* to, std::span<const std::byte> from, std::uint32_t crc,
                                        StoreWidth width = widest_stores()) noexcept;

}  // namespace kedge::fs
