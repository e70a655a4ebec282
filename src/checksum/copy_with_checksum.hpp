// Copies and XORs that take their CRC32C in the same pass.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "checksum/kernels.hpp"

namespace kedge {

/// Copies `from` to `to`, which are of one size, and continues `crc` with the CRC32C of what was copied. Large copies
/// go past the caches: what is written is not read again soon, and the destination need not be read first. Other
/// threads see the bytes as after any copy. Throws invalid_argument if the two overlap.
[[nodiscard]] std::uint32_t copy_with_checksum(std::span<std::byte> to, std::span<const std::byte> from,
                                               std::uint32_t crc, const checksum::Kernel& kernel = checksum::kernel());

/// Copies `from` to `to` and continues `crc`, as copy_with_checksum does, but leaves the bytes in the caches whatever
/// their number: for what is used again at once.
[[nodiscard]] std::uint32_t copy_in_caches_with_checksum(std::span<std::byte> to, std::span<const std::byte> from,
                                                         std::uint32_t crc,
                                                         const checksum::Kernel& kernel = checksum::kernel());

/// Writes the XOR of all sources to `to`, past the caches if it is large, and continues `crc` with the CRC32C of what
/// was written. There is at least one source, and all are of the size of `to`, which may be one of them. Throws
/// invalid_argument if it overlaps one otherwise.
[[nodiscard]] std::uint32_t xor_with_checksum(std::span<std::byte> to, std::span<const std::span<const std::byte>> from,
                                              std::uint32_t crc, const checksum::Kernel& kernel = checksum::kernel());

/// Writes the XOR of all sources to `to` and continues `crc`, as xor_with_checksum does, but leaves the sum in the
/// caches whatever its size: for what is used again at once.
[[nodiscard]] std::uint32_t xor_in_caches_with_checksum(std::span<std::byte> to,
                                                        std::span<const std::span<const std::byte>> from,
                                                        std::uint32_t crc,
                                                        const checksum::Kernel& kernel = checksum::kernel());

}  // namespace kedge
