// Writes a container: regions at their final offsets as they are saved, then HDF5 structure and index, then the seal.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <shared_mutex>
#include <span>
#include <vector>

#include "format/layout.hpp"
#include "format/region_copy.hpp"
#include "format/superblock.hpp"
#include "fs/file_system.hpp"

namespace kedge::format {

/// The file that a container is written to: unsealed (superblock all zero), otherwise with any content. The writer
/// calls reserve and set_size while nothing is copied. Several threads may copy to bytes() at once, to different
/// ranges. Errors are thrown and end the container.
class ContainerTarget {
 public:
  ContainerTarget() = default;
  ContainerTarget(const ContainerTarget&) = delete;
  ContainerTarget& operator=(const ContainerTarget&) = delete;
  virtual ~ContainerTarget() = default;

  /// Makes sure that at least `size_bytes` bytes have storage; never shrinks the file.
  virtual void reserve(std::uint64_t size_bytes) = 0;
  /// Reserves at least `size_bytes`, and up to `wished_bytes` if there is ample space, to avoid growing again soon.
  /// Returns the reserved size.
  virtual std::uint64_t reserve_ahead(std::uint64_t size_bytes, std::uint64_t wished_bytes);
  /// The file's bytes. Call it again after reserve and set_size.
  virtual fs::ByteAccess& bytes() = 0;
  /// The file's memory, for devices to write to. Empty if it has none, or if registering does not pay yet because the
  /// file's size changed recently. Registrations end when the size changes.
  [[nodiscard]] virtual device::HostMemory memory() noexcept { return {}; }
  /// The file on disk, for devices to write pages that nothing else writes. Empty if it is not on a disk.
  /// Registrations end when the size changes, and before the file is sealed.
  [[nodiscard]] virtual device::FileTarget direct_file() noexcept { return {}; }
  /// Sets the exact final size. finish() calls it once, after reserve(); the size may be right already.
  virtual void set_size(std::uint64_t size_bytes) = 0;
};

/// Writes regions without HDF5 to predicted offsets while they match `predicted` (in any order, from any thread). The
/// first region that differs makes HDF5 build the structure again, around the regions that are already in place.
class ContainerWriter {
 public:
  /// Reserves the predicted size; `predicted` may be null. `target` must outlive the writer. Large regions are copied
  /// by up to `copy_threads` threads.
  ContainerWriter(ContainerTarget& target, std::shared_ptr<const Layout> predicted, unsigned copy_threads = 1);

  /// Local, thread-safe. Copies `bytes` to their final offset; the caller may reuse them on return. Throws
  /// Error{invalid_argument} (see check() and LayoutBuilder::add; or if the number of bytes contradicts the shape) and
  /// what the target throws. After any exception the container cannot be finished.
  void add(const RegionSpec& spec, std::span<const std::byte> bytes);

  /// Adds a region from device memory through `staging`, whose buffers hold whole blocks, or directly into the file's
  /// memory if `straight` and possible. Also throws what `staging` throws.
  void add(const RegionSpec& spec, device::Staging& staging, const device::Span& from, bool straight);

  /// Adds a region from the first `bytes` of `from`, with at most 4 MiB in memory at a time. Also throws what `from`
  /// throws.
  void add(const RegionSpec& spec, fs::ByteAccess& from, std::uint64_t bytes);

  /// Local, thread-safe. Claims a predicted region, whose bytes fill_claimed_region() must bring before finish().
  /// Returns false, and claims nothing, if the region was not predicted. Throws as add() does.
  [[nodiscard]] bool claim_region(const RegionSpec& spec);
  /// Writes the bytes of a region that claim_region() claimed; call it once for each. Local, thread-safe; throws as
  /// add() does.
  void fill_claimed_region(const RegionSpec& spec, device::Staging& staging, const device::Span& from, bool straight);
  /// Whether exactly the predicted regions are saved or promised: finish() then makes no HDF5 call.
  [[nodiscard]] bool is_as_predicted() const;

  /// Writes all but the superblock, and returns the layout, with which the next container can be predicted. Call it
  /// once, after all add() returned. Throws Error{bad_state} if an add() failed.
  [[nodiscard]] std::shared_ptr<const Layout> finish();

  /// The checksums of the region at this position of the layout, one for each block. Call it after finish().
  [[nodiscard]] std::span<const std::uint32_t> checksums(std::size_t position) const {
    return saved_regions_.at(position).checksums;
  }

  /// The sealed superblock: `identity` with the file's size, index and extents. Call it after finish(). Throws
  /// Error{invalid_argument} if something does not fit.
  [[nodiscard]] SuperblockBytes make_sealed_head(Superblock identity) const;
  /// Writes the sealed superblock: for a file that is sealed on its own.
  void seal(const Superblock& identity);

  /// Size of the file: final after finish(), before that the bytes needed so far.
  [[nodiscard]] std::uint64_t container_bytes() const;

 private:
  // A saved region. During prediction, its position is the one in predicted_->regions.
  struct SavedRegion {
    RegionSpec spec;  // empty during prediction: predicted_ has it
    std::uint64_t offset = 0;
    std::uint64_t size_bytes = 0;
    BlockChecksums checksums;
    bool is_claimed = false;  // promised, but not filled yet
  };
  class Attempt;
  /// Copies a region's bytes to `offset`. `stays` says that the file is not expected to grow.
  using WriteRegion = std::function<BlockChecksums(fs::ByteAccess& file, std::uint64_t offset, bool stays)>;

  void add_copied(const RegionSpec& spec, std::uint64_t bytes, const WriteRegion& copy);
  [[nodiscard]] bool add_predicted(const RegionSpec& spec, const WriteRegion& copy);
  void begin_adding(const RegionSpec& spec, std::uint64_t bytes) const;
  [[nodiscard]] std::ptrdiff_t claim_predicted(const RegionSpec& spec);
  [[nodiscard]] WriteRegion from_device(device::Staging& staging, const device::Span& from, bool straight);
  [[nodiscard]] SavedRegion& add_saved_region(const RegionSpec& spec);
  void end_prediction();
  void reserve(std::uint64_t size_bytes);
  void move_to_new_offsets(std::vector<std::size_t> positions, std::deque<SavedRegion>& saved);
  void write_structure();

  ContainerTarget& target_;
  std::shared_ptr<const Layout> predicted_;
  unsigned copy_threads_;
  // during prediction: claimed by a save
  mutable std::shared_mutex mutex_;
  std::atomic<bool> has_failed_{false};
  /// Whether a thread saves or has saved each predicted region.
  std::vector<std::atomic<bool>> claimed_;  // in prediction: somebody saves or has saved this region
  std::deque<SavedRegion> saved_regions_;   // references stay valid when it grows
  std::unique_ptr<LayoutBuilder> builder_;  // null during prediction
  std::uint64_t reserved_bytes_ = 0;
  std::uint64_t end_bytes_ = kSuperblockBytes;  // of the regions placed so far
  std::shared_ptr<const Layout> layout_;        // after finish()
  std::uint32_t index_crc_ = 0;
  std::uint32_t index_extent_crc_ = 0;
};

}  // namespace kedge::format
