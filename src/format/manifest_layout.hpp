// Content of a ManifestLayout; shared by those who make it and those who fill it in.
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
  std::vector<std::byte> file;  ///< all of it; head, shard table and attributes are still zero
  std::vector<Extent> extents;  ///< as in the head; checksums of what changes with every commit are not those yet
  std::vector<std::string> shard_files;
  std::uint64_t table_offset = 0;
  std::uint64_t attributes_offset = 0;
  std::uint64_t attributes_room = 0;
  std::vector<Hdf5Attribute> shown_attributes;
  bool has_view = false;
};

}  // namespace kedge::format
