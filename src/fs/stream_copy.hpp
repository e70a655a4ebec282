// The copy that a checkpoint consists of: once through the core, with the checksum taken on the way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace kedge::fs {

/// Copies `from` to `to`, which do not overlap, and continues `crc` with the CRC32C of what was copied. Large copies go
/// past the caches: what is written is not read again soon, and its old content need not be fetched. Other threads see
/// the bytes as after any copy.
[[nodiscard]] std::uint32_t stream_copy(std::byte* to, std::span<const std::byte> from, std::uint32_t crc) noexcept;

}  // namespace kedge::fs
