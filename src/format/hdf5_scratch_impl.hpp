// Private to hdf5_structure and hdf5_view: the open handles of a scratch file. Exposes hdf5.h, so include it there
// only.
#pragma once

#include <array>
#include <map>
#include <string>
#include <utility>

#include "format/hdf5_handle.hpp"
#include "format/hdf5_memory.hpp"
#include "format/hdf5_structure.hpp"

namespace kedge::format {

/// Constructed, used and destroyed under an Hdf5Lock.
struct Hdf5Scratch::Impl {
  explicit Impl(Hdf5Versions with) : versions(with) {}

  /// HDF5 type of a dataset with these elements and shape.
  [[nodiscard]] const Hdf5Handle& type(const Elements& elements, const Shape& shape);
  /// Creates a dataset and returns the file offset of its bytes; 0 if it has none.
  [[nodiscard]] std::uint64_t create_placed(const std::string& path, hid_t type, hid_t space, hid_t creation) const;

  Hdf5Versions versions;
  SparseMemory memory;
  Hdf5Handle groups, datasets, links;
  std::array<Hdf5Handle, static_cast<std::size_t>(kLastDataType) + 1> types;  // by data type
  std::map<std::pair<std::string, std::uint64_t>, Hdf5Handle> structs;        // by members and size
  Hdf5Handle file;                                                            // the last member, so closed first
};

/// A property list of this kind without object times, which would make files of one structure differ.
[[nodiscard]] Hdf5Handle object_properties(hid_t kind);

[[nodiscard]] Hdf5Handle dataspace(const Shape& shape);

/// The dataset's shape: without the last extent, the struct size, if the elements are structs.
[[nodiscard]] Shape shape_in_file(const Elements& elements, const Shape& shape);

}  // namespace kedge::format
