// Copies and XORs that take their CRC32C in the same pass.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "checksum/kernels.hpp"

namespace kedge {

/// Copies `from` to `to` and continues `crc` with the CRC32C of the copied bytes. Both must have one size and must not
/// overlap (invalid_argument). Large copies bypass the caches, which saves reading the destination first; use this for
/// bytes that are not needed again soon.
[[nodiscard]] std::uint32_t copy_with_checksum(std::span<std::byte> to, std::span<const std::byte> from,
                                               std::uint32_t crc, const checksum::Kernel& kernel = checksum::kernel());

/// Copies as copy_with_checksum() does, but keeps the bytes in the caches, where they are used again at once.
[[nodiscard]] std::uint32_t copy_in_caches_with_checksum(std::span<std::byte> to, std::span<const std::byte> from,
                                                         std::uint32_t crc,
                                                         const checksum::Kernel& kernel = checksum::kernel());

/// Writes the XOR of all sources, at least one, to `to` and continues `crc` with the CRC32C of the result. All have one
/// size. Large results bypass the caches. `to` may be one of the sources; any other overlap throws invalid_argument.
[[nodiscard]] std::uint32_t xor_with_checksum(std::span<std::byte> to, std::span<const std::span<const std::byte>> from,
                                              std::uint32_t crc, const checksum::Kernel& kernel = checksum::kernel());

/// Combines as xor_with_checksum() does, but keeps the result in the caches, where it is used again at once.
[[nodiscard]] std::uint32_t xor_in_caches_with_checksum(std::span<std::byte> to,
                                                        std::span<const std::span<const std::byte>> from,
                                                        std::uint32_t crc,
                                                        const checksum::Kernel& kernel = checksum::kernel());

}  // namespace kedge
