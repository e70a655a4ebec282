// Writes a container: regions go to their final places as they are saved, structure and index follow, the seal is last.
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

/// The file that a container is written to. It is unsealed (superblock all zero) and may hold old bytes otherwise.
/// The writer calls reserve and set_size while no copy is under way; bytes() may be copied to by several threads at
/// once, never to the same place. Errors are thrown and end the container.
class ContainerTarget {
 public:
  ContainerTarget() = default;
  ContainerTarget(const ContainerTarget&) = delete;
  ContainerTarget& operator=(const ContainerTarget&) = delete;
  virtual ~ContainerTarget() = default;

  /// The file has real storage for at least so many bytes when it returns; never shrinks it.
  virtual void reserve(std::uint64_t size_bytes) = 0;
  /// At least `size_bytes`; `wished_bytes` where there is ample room, so that it need not grow again soon. How much.
  virtual std::uint64_t reserve_ahead(std::uint64_t size_bytes, std::uint64_t wished_bytes);
  /// The file's bytes; asked for again after reserve and set_size.
  virtual fs::ByteAccess& bytes() = 0;
  /// The file's memory, for devices to write; empty if it lies elsewhere, or if it is not worth registering: not before
  /// the file has kept its size for a while. Registrations end when the size changes.
  [[nodiscard]] virtual device::HostMemory memory() noexcept { return {}; }
  /// The file on a disk, for devices to write, where nothing else writes the same pages; empty if it lies elsewhere.
  /// Registrations end when the size changes, and before the file is sealed.
  [[nodiscard]] virtual device::FileTarget direct_file() noexcept { return {}; }
  /// The exact final size. Called once by finish(), after reserve() with at least as much; may find it right already.
  virtual void set_size(std::uint64_t size_bytes) = 0;
};

/// Writes regions without HDF5, at the places that were predicted, as long as they are those of `predicted` (in any
/// order, from any thread); at the first one that differs the structure is made anew around what is already in place.
class ContainerWriter {
 public:
  /// `target` must outlive the writer. `predicted` may be null. Reserves what was predicted. Up to `copy_threads`
  /// threads copy a large region together.
  ContainerWriter(ContainerTarget& target, std::shared_ptr<const Layout> predicted, unsigned copy_threads = 1);

  /// Local, thread-safe. Copies `bytes` to their final place; they may be reused when it returns. Throws
  /// Error{invalid_argument} (see check() and LayoutBuilder::add; bytes that are not as many as the shape says) or what
  /// the target throws. After any exception the container cannot be finished any more.
  void add(const RegionSpec& spec, std::span<const std::byte> bytes);

  /// Adds a region from memory on a device, by way of `staging`, whose buffers are of whole blocks; if `straight`, into
  /// the file's own memory where that can be. Throws also what `staging` does.
  void add(const RegionSpec& spec, device::Staging& staging, const device::Span& from, bool straight);

  /// Adds a region from the first `bytes` of `from`, of which no more than 4 MiB are in memory at a time. Throws also
  /// what `from` throws.
  void add(const RegionSpec& spec, fs::ByteAccess& from, std::uint64_t bytes);

  /// Local, thread-safe. Takes the region's place, whose bytes fill() brings before finish(); nothing else may be
  /// saved under this name. False, and nothing is taken, if it is not a region that was predicted. Throws as add().
  [[nodiscard]] bool promise(const RegionSpec& spec);
  /// The bytes of a region that was promised, once; likewise.
  void fill(const RegionSpec& spec, device::Staging& staging, const device::Span& from, bool straight);
  /// Whether exactly the regions that were predicted are saved or promised: finish() does not call HDF5 then.
  [[nodiscard]] bool is_as_predicted() const;

  /// Writes everything but the superblock, and returns the layout, to predict the next container with. Call it once,
  /// after all add() have returned. Throws Error{bad_state} if an add() failed.
  [[nodiscard]] std::shared_ptr<const Layout> finish();

  /// The sealed superblock, with what the file knows (size, index, extents). After finish(). Throws
  /// Error{invalid_argument} if it does not fit.
  [[nodiscard]] SuperblockBytes sealed_head(Superblock identity) const;
  /// Writes it: for a file that is sealed by itself.
  void seal(const Superblock& identity);

  /// Size of the file: final after finish(), before that what is needed as far as known.
  [[nodiscard]] std::uint64_t container_bytes() const;

 private:
  // One saved region. In prediction its position is that in predicted_->regions.
  struct Saved {
    RegionSpec spec;  // empty while predicted: it is the predicted one
    std::uint64_t offset = 0;
    std::uint64_t size_bytes = 0;
    BlockChecksums checksums;
    bool is_reserved = false;  // promised, and not filled yet
  };
  class Attempt;
  /// Copies a region's bytes to this offset of the file. `stays`: the file is not going to grow, as far as is known.
  using WriteRegion = std::function<BlockChecksums(fs::ByteAccess& file, std::uint64_t offset, bool stays)>;

  void add_copied(const RegionSpec& spec, std::uint64_t bytes, const WriteRegion& copy);
  [[nodiscard]] bool add_predicted(const RegionSpec& spec, const WriteRegion& copy);
  void begin_adding(const RegionSpec& spec, std::uint64_t bytes) const;
  [[nodiscard]] std::ptrdiff_t claim_predicted(const RegionSpec& spec);
  [[nodiscard]] WriteRegion from_device(device::Staging& staging, const device::Span& from, bool straight);
  [[nodiscard]] Saved& place(const RegionSpec& spec);
  void leave_prediction();
  void reserve(std::uint64_t size_bytes);
  void move_to_new_places(std::vector<std::size_t> positions, std::deque<Saved>& saved);
  void write_structure();

  ContainerTarget& target_;
  std::shared_ptr<const Layout> predicted_;
  unsigned copy_threads_;
  // Copies run under a shared lock; what moves places, remaps or calls HDF5 under the exclusive one.
  mutable std::shared_mutex mutex_;
  std::atomic<bool> failed_{false};
  std::vector<std::atomic<bool>> taken_;    // in prediction: somebody saves or has saved this region
  std::deque<Saved> saved_;                 // references stay valid when it grows
  std::unique_ptr<LayoutBuilder> builder_;  // not null: prediction was left
  std::uint64_t reserved_bytes_ = 0;
  std::uint64_t end_bytes_ = kSuperblockBytes;  // of the regions placed so far
  std::shared_ptr<const Layout> layout_;        // after finish()
  std::uint32_t index_crc_ = 0;
  std::uint32_t index_extent_crc_ = 0;
};

}  // namespace kedge::format
