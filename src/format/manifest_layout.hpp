// Content of a ManifestLayout, shared by the code that makes it and the code that fills it in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "format/hdf5_attributes.hpp"
#include "format/superblock.hpp"

namespace kedge::format {

class ManifestLayout {
 public:
  std::vector<std::byte> file;  ///< head, shard table and attributes are still zero
  std::vector<Extent> extents;  ///< as in the head; checksums of changing extents are not set yet
  std::vector<std::string> shard_files;
  std::uint64_t table_offset = 0;
  std::uint64_t attributes_offset = 0;
  std::uint64_t attributes_capacity_bytes = 0;
  std::vector<Hdf5Attribute> shown_attributes;
  bool has_view = false;
};

}  // namespace kedge::format
