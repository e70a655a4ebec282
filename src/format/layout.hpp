// Where everything of a container lies: made by HDF5 once for a structure, then kept and reused without it.
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

/// A stretch of HDF5 metadata, trailing padding included.
struct MetadataExtent {
  std::uint64_t offset = 0;
  std::vector<std::byte> bytes;
};

/// Immutable and shared. `regions`, `data_extents` and so on are those of RegionMap.
struct Layout : RegionMap {
  std::vector<MetadataExtent> metadata;
  std::vector<Extent> table;          ///< as it goes into the superblock; the index's checksum is still 0
  std::vector<std::byte> index_head;  ///< the index up to its checksums: the same for every commit
  std::uint64_t index_offset = 0;
  std::uint64_t index_room = 0;  ///< length of the index extent
  std::uint64_t file_size = 0;

  [[nodiscard]] std::uint64_t index_size() const noexcept { return index_head.size() + 4 * checksum_count; }
};

/// Places regions one after the other. Offsets depend on the sequence of specs alone, so a prefix that is replayed
/// gets the same places again. Not thread-safe. After an exception it can only be destroyed.
class LayoutBuilder {
 public:
  LayoutBuilder();

  /// Creates the dataset and returns where its bytes lie in the file (0 for a region without bytes). Throws
  /// Error{invalid_argument} if the spec is refused by check(), the name is taken, or is a group, or would need a
  /// region as group; Error{io} if HDF5 fails.
  std::uint64_t add(const RegionSpec& spec);

  /// Adds the index dataset, closes the HDF5 file and collects its metadata. Only once.
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
