// CRC32C (Castagnoli), the one checksum of Kedge; computed by ISA-L.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace kedge {

/// Returns the CRC32C of the bytes, continued from `crc` (0 to begin). crc32c("123456789") is 0xe3069283 (RFC 3720,
/// B.4).
[[nodiscard]] std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t crc = 0) noexcept;

/// Returns the CRC32C of many bytes that are probably in no cache: prefetching makes it a fifth faster there, and
/// slower otherwise.
[[nodiscard]] std::uint32_t crc32c_from_memory(std::span<const std::byte> bytes, std::uint32_t crc = 0) noexcept;

/// Returns the CRC32C of bytes whose CRC32C is `crc`, with `length` zero bytes appended.
[[nodiscard]] std::uint32_t crc32c_zeros(std::uint64_t length, std::uint32_t crc) noexcept;

/// Returns the CRC32C of A followed by B, from those of A and B and the length of B. Costs O(log length_b).
[[nodiscard]] std::uint32_t crc32c_combine(std::uint32_t crc_a, std::uint32_t crc_b, std::uint64_t length_b) noexcept;

/// Returns the CRC32C of `length` bytes, from the plain remainder of their polynomial (initial value 0, no final
/// inversion).
[[nodiscard]] std::uint32_t crc32c_of_raw(std::uint32_t raw, std::uint64_t length) noexcept;

}  // namespace kedge
