// Region bytes on their way in and out of a file, with the checksums of their blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "device/staging.hpp"
#include "format/region_map.hpp"
#include "fs/file_system.hpp"

namespace kedge::format {

/// CRC32C of each 4 MiB of a region, padding not included; a small region has one, an empty one none.
using BlockChecksums = std::vector<std::uint32_t>;

/// One copy, of a large region by up to `threads` threads. Throws what ByteAccess throws, on whichever thread.
[[nodiscard]] BlockChecksums copy_region_in(fs::ByteAccess& file, std::uint64_t offset,
                                            std::span<const std::byte> bytes, unsigned threads = 1);

/// How devices reach a whole file by themselves, if they do: as memory, or on a disk. Both may be empty.
struct DeviceTarget {
  device::HostMemory memory;
  device::FileTarget file;
};

/// Copies a region in from memory on a device, through buffers unless devices reach the file.
[[nodiscard]] BlockChecksums copy_region_in(fs::ByteAccess& file, std::uint64_t offset, device::Staging& staging,
                                            const device::Span& from, const DeviceTarget& reach, unsigned threads = 1);

/// Copies a region in from the start of another file, a block at a time: never more than one is in memory.
[[nodiscard]] BlockChecksums stream_region_in(fs::ByteAccess& file, std::uint64_t offset, fs::ByteAccess& from,
                                              std::uint64_t size_bytes);

/// Copies a region out of a file, of a large region by up to `threads` threads.
[[nodiscard]] BlockChecksums copy_region_out(fs::ByteAccess& file, std::uint64_t offset, std::span<std::byte> bytes,
                                             unsigned threads = 1);

/// Copies a region out to memory on a device.
[[nodiscard]] BlockChecksums copy_region_out(fs::ByteAccess& file, std::uint64_t offset, device::Staging& staging,
                                             const device::Span& to, unsigned threads = 1);

/// The checksums of the index, from those of the regions (by their position in `map.regions`); padding counts as zeros.
[[nodiscard]] std::vector<std::uint32_t> extent_checksums(const RegionMap& map,
                                                          std::span<const BlockChecksums* const> regions);

/// Checksum of block `block` of a large region's extent, if `crc` is that of the region's part of it.
[[nodiscard]] std::uint32_t crc_with_padding(const DataExtent& extent, const StoredRegion& region, std::uint64_t block,
                                             std::uint32_t crc) noexcept;

/// Writes `length` zero bytes.
void write_zeros(fs::ByteAccess& file, std::uint64_t offset, std::uint64_t length);

/// Writes zeros wherever a data extent holds no region.
void write_padding(fs::ByteAccess& file, const RegionMap& map);

/// True if all padding is still zero.
[[nodiscard]] bool is_padding_intact(fs::ByteAccess& file, const RegionMap& map, const DataExtent& extent);

}  // namespace kedge::format
