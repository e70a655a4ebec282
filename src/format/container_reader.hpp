// Reads a container without HDF5. Superblock, index and all bytes that it returns are checked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "device/staging.hpp"
#include "format/index.hpp"
#include "format/superblock.hpp"
#include "fs/file_system.hpp"

namespace kedge::format {

/// A damaged stretch of a container.
struct Damage {
  std::string description;  ///< e.g. "region 'temperature'"
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
};

/// Reads the first 4096 bytes. Throws Error{corrupt} if they are not a sealed superblock or give another file size.
[[nodiscard]] Superblock read_superblock(fs::ByteAccess& bytes, std::uint64_t file_size, const std::string& path);

/// The calls are thread-safe if the ByteAccess is.
class ContainerReader {
 public:
  /// Reads and checks superblock and index. `bytes` must outlive the reader; `path` is for messages. Large regions are
  /// read by up to `copy_threads` threads. Throws Error{corrupt} with the reason.
  ContainerReader(fs::ByteAccess& bytes, std::uint64_t file_size, std::string path, unsigned copy_threads = 1);

  [[nodiscard]] const Superblock& superblock() const noexcept { return superblock_; }
  /// In the order in which they were saved.
  [[nodiscard]] const std::vector<StoredRegion>& regions() const noexcept { return index_.map.regions; }
  /// Null if there is no such region.
  [[nodiscard]] const StoredRegion* find_region(std::string_view name) const noexcept;
  /// The stored CRC32C of a small region, or of each 4 MiB of a large one (with the padding in the last); empty for a
  /// region without bytes. `region` must be one of regions().
  [[nodiscard]] std::span<const std::uint32_t> checksums(const StoredRegion& region) const noexcept;

  /// Copies the region into `out`, which must have its size (else Error{mismatch}). Throws Error{corrupt} with region
  /// and path; the content of `out` is then undefined.
  void read(const StoredRegion& region, std::span<std::byte> out) const;

  /// Reads a region into device memory through `staging`, whose buffers hold whole blocks. Also throws what `staging`
  /// throws.
  void read(const StoredRegion& region, device::Staging& staging, const device::Span& out) const;

  /// Writes a region to the start of `out`, in blocks of 4 MiB that are checked before they are written.
  void read(const StoredRegion& region, fs::ByteAccess& out) const;

  /// Copies one block of 4 MiB, or what is left of the region, into `out`. Throws Error{corrupt}.
  void read_block(const StoredRegion& region, std::uint64_t block, std::span<std::byte> out) const;

  /// The checkpoint's attributes as stored in logical rank 0's container (decode_attributes parses them); empty if
  /// there are none. Throws Error{corrupt}.
  [[nodiscard]] std::string attributes() const;

  /// CRC32C that the undamaged file has, computed from the stored checksums without reading.
  [[nodiscard]] std::uint32_t file_crc() const;

  /// Compares every byte of the file with its checksum: superblock, index, metadata, data, padding. Empty if nothing is
  /// damaged. `on_progress` gets the number of bytes checked since its last call.
  [[nodiscard]] std::vector<Damage> verify(const std::function<void(std::uint64_t)>& on_progress = {}) const;

  /// Whether read() has already returned this whole region undamaged.
  using WasRead = std::function<bool(const StoredRegion& region)>;
  /// Verifies all bytes but those of regions that `was_read`. Empty if nothing is damaged.
  [[nodiscard]] std::vector<Damage> verify_unread(const WasRead& was_read) const;
  /// The number of bytes of regions that verify_unread() reads.
  [[nodiscard]] std::uint64_t unread_bytes(const WasRead& was_read) const;

 private:
  void verify_structure(std::vector<Damage>& damages, const std::function<void(std::uint64_t)>& progress) const;
  void verify_data(const DataExtent& extent, std::vector<Damage>& damages,
                   const std::function<void(std::uint64_t)>& progress) const;
  void verify_run(const DataExtent& extent, std::vector<Damage>& damages) const;
  [[nodiscard]] bool was_extent_read(const DataExtent& extent, const WasRead& was_read) const;
  void require_size(const StoredRegion& region, std::uint64_t size_bytes) const;
  void require_blocks_intact(const StoredRegion& region, std::size_t first, std::span<const std::uint32_t> found) const;
  [[nodiscard]] const StoredRegion& region_at(std::uint64_t position) const noexcept;
  [[nodiscard]] const DataExtent& extent_of(const StoredRegion& region) const noexcept;

  fs::ByteAccess& bytes_;
  std::string path_;
  unsigned copy_threads_;
  Superblock superblock_;
  Index index_;
};

}  // namespace kedge::format
