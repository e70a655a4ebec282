// Copies region bytes into and out of files and computes the checksums of their blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "device/staging.hpp"
#include "format/region_map.hpp"
#include "fs/file_system.hpp"

namespace kedge::format {

/// CRC32C of each 4 MiB of a region, without padding; one for a small region, none for an empty one.
using BlockChecksums = std::vector<std::uint32_t>;

/// Copies a region into a file; a large one by up to `threads` threads. Throws what ByteAccess throws.
[[nodiscard]] BlockChecksums copy_region_in(fs::ByteAccess& file, std::uint64_t offset,
                                            std::span<const std::byte> bytes, unsigned threads = 1);

/// How devices can write to the file directly: as memory or on disk. Either may be empty.
struct DeviceTarget {
  device::HostMemory memory;
  device::FileTarget file;
};

/// Copies a region from device memory: directly if `target` permits, otherwise through staging buffers.
[[nodiscard]] BlockChecksums copy_region_in(fs::ByteAccess& file, std::uint64_t offset, device::Staging& staging,
                                            const device::Span& from, const DeviceTarget& reach, unsigned threads = 1);

/// Copies a region from the start of another file, with at most one block in memory.
[[nodiscard]] BlockChecksums stream_region_in(fs::ByteAccess& file, std::uint64_t offset, fs::ByteAccess& from,
                                              std::uint64_t size_bytes);

/// Copies a region out of a file; a large one by up to `threads` threads.
[[nodiscard]] BlockChecksums copy_region_out(fs::ByteAccess& file, std::uint64_t offset, std::span<std::byte> bytes,
                                             unsigned threads = 1);

/// Copies a region out to device memory.
[[nodiscard]] BlockChecksums copy_region_out(fs::ByteAccess& file, std::uint64_t offset, device::Staging& staging,
                                             const device::Span& to, unsigned threads = 1);

/// Checksums of the index, from those of the regions (in the order of `map.regions`); padding counts as zeros.
[[nodiscard]] std::vector<std::uint32_t> extent_checksums(const RegionMap& map,
                                                          std::span<const BlockChecksums* const> regions);

/// Checksum of a large region's block with its padding, from the checksum `crc` without it.
[[nodiscard]] std::uint32_t crc_with_padding(const DataExtent& extent, const StoredRegion& region, std::uint64_t block,
                                             std::uint32_t crc) noexcept;

void write_zeros(fs::ByteAccess& file, std::uint64_t offset, std::uint64_t length);

/// Writes zeros where a data extent holds no region.
void write_padding(fs::ByteAccess& file, const RegionMap& map);

/// Whether all padding is zero.
[[nodiscard]] bool is_padding_intact(fs::ByteAccess& file, const RegionMap& map, const DataExtent& extent);

}  // namespace kedge::format
