// The layout of a container: HDF5 makes it once for a structure; later containers reuse it without HDF5.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

#include "format/hdf5_structure.hpp"
#include "format/region_map.hpp"

namespace kedge::format {

/// HDF5 metadata with its trailing padding.
struct MetadataExtent {
  std::uint64_t offset = 0;
  std::vector<std::byte> bytes;
};

struct Layout : RegionMap {
  std::vector<MetadataExtent> metadata;
  std::vector<Extent> table;          ///< the superblock's table; the index's checksum is still 0
  std::vector<std::byte> index_head;  ///< the index without its checksums, which all commits of the structure share
  std::uint64_t index_offset = 0;
  std::uint64_t index_capacity_bytes = 0;  ///< length of the index's extent
  std::uint64_t file_size = 0;

  [[nodiscard]] std::uint64_t index_size() const noexcept { return index_head.size() + 4 * checksum_count; }
};

/// Allocates regions one after the other. Offsets depend only on the sequence of specs, so that repeating it gives the
/// same offsets. Not thread-safe. After an exception it can only be destroyed.
class LayoutBuilder {
 public:
  LayoutBuilder();

  /// Creates the dataset and returns the file offset of its bytes (0 if it has none). Throws Error{invalid_argument} if
  /// check() refuses the spec or its name is taken, is a group, or has a region as a parent; Error{io} if HDF5 fails.
  std::uint64_t add(const RegionSpec& spec);

  /// Adds the index dataset, closes the HDF5 file and collects its metadata. Call it once.
  [[nodiscard]] std::shared_ptr<const Layout> finish();

 private:
  void add_groups_of(const std::string& name);
  void grow_metadata_blocks();

  std::uint64_t meta_block_bytes_;
  std::uint64_t metadata_estimate_bytes_ = 0;
  Hdf5Scratch scratch_;
  std::vector<StoredRegion> regions_;
  std::unordered_set<std::string> names_;
  std::unordered_set<std::string> groups_;
};

}  // namespace kedge::format
