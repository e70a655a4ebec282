// Reads a container without HDF5: superblock, index and every byte it hands out are checked.
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

/// A stretch of a container that is not what was written.
struct Damage {
  std::string what;  ///< e.g. "region 'temperature'"
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
};

/// Only the first 4096 bytes are read. Throws Error{corrupt} if they are not a sealed superblock or say another size
/// than `file_size`.
[[nodiscard]] Superblock read_superblock(fs::ByteAccess& bytes, std::uint64_t file_size, const std::string& path);

/// The calls are thread-safe if the ByteAccess is.
class ContainerReader {
 public:
  /// Reads and checks superblock and index. `bytes` must outlive the reader; `path` is for messages. Up to
  /// `copy_threads` threads read a large region together. Throws Error{corrupt} with what is wrong.
  ContainerReader(fs::ByteAccess& bytes, std::uint64_t file_size, std::string path, unsigned copy_threads = 1);

  [[nodiscard]] const Superblock& superblock() const noexcept { return superblock_; }
  /// In the order in which they were saved.
  [[nodiscard]] const std::vector<StoredRegion>& regions() const noexcept { return index_.map.regions; }
  /// Null if there is none.
  [[nodiscard]] const StoredRegion* find(std::string_view name) const noexcept;
  /// The stored CRC32C of the region (small) or of each 4 MiB of it (large, the last with its padding); none for an
  /// empty one. `region` must be one of regions().
  [[nodiscard]] std::span<const std::uint32_t> checksums(const StoredRegion& region) const noexcept;

  /// One copy into `out`, which must have the region's size. Throws Error{corrupt} naming region and path, and then
  /// the content of `out` is not to be used; Error{mismatch} if the size is another.
  void read(const StoredRegion& region, std::span<std::byte> out) const;

  /// Reads a region to memory on a device, by way of `staging`, whose buffers are of whole blocks. Throws also what
  /// `staging` does.
  void read(const StoredRegion& region, device::Staging& staging, const device::Span& out) const;

  /// Reads a region to the start of `out`, a block of 4 MiB at a time, each checked before it is written.
  void read(const StoredRegion& region, fs::ByteAccess& out) const;

  /// The checkpoint's attributes as they lie in logical rank 0's container (attributes.hpp decodes them); empty if
  /// there are none. Throws Error{corrupt}.
  [[nodiscard]] std::string attributes() const;

  /// CRC32C of the whole file, put together from the stored checksums: what the file has if nothing in it is damaged.
  /// Nothing is read for it.
  [[nodiscard]] std::uint32_t file_crc() const;

  /// Every byte of the file against its checksum: superblock, index, metadata, data, padding. Empty if all is well.
  /// `on_progress` is called with the bytes checked since the last call.
  [[nodiscard]] std::vector<Damage> verify(const std::function<void(std::uint64_t)>& on_progress = {}) const;

  /// Whether read() has given out all of this region, unharmed.
  using WasRead = std::function<bool(const StoredRegion& region)>;
  /// Verifies what `was_read` has not: with the reads that it knows of, it is every byte of the file. Empty if all is
  /// well.
  [[nodiscard]] std::vector<Damage> verify_unread(const WasRead& was_read) const;
  /// How many bytes of regions that takes.
  [[nodiscard]] std::uint64_t unread_bytes(const WasRead& was_read) const;

 private:
  void verify_structure(std::vector<Damage>& damages, const std::function<void(std::uint64_t)>& progress) const;
  void verify_data(const DataExtent& extent, std::vector<Damage>& damages,
                   const std::function<void(std::uint64_t)>& progress) const;
  void verify_run(const DataExtent& extent, std::vector<Damage>& damages) const;
  [[nodiscard]] bool is_read(const DataExtent& extent, const WasRead& was_read) const;
  void check_size(const StoredRegion& region, std::uint64_t size_bytes) const;
  void check_blocks(const StoredRegion& region, std::size_t first, std::span<const std::uint32_t> found) const;
  [[nodiscard]] const StoredRegion& region_at(std::uint64_t position) const noexcept;
  [[nodiscard]] const DataExtent& extent_of(const StoredRegion& region) const noexcept;

  fs::ByteAccess& bytes_;
  std::string path_;
  unsigned copy_threads_;
  Superblock superblock_;
  Index index_;
};

}  // namespace kedge::format
