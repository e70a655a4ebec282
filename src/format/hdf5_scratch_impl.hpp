// Private to hdf5_structure and hdf5_view: what is open in a scratch file. Shows hdf5.h; include it there only.
#pragma once

#include <array>
#include <map>
#include <string>
#include <utility>

#include "format/hdf5_handle.hpp"
#include "format/hdf5_memory.hpp"
#include "format/hdf5_structure.hpp"

namespace kedge::format {

/// Made, used and destroyed under the gate.
struct Hdf5Scratch::Impl {
  explicit Impl(Hdf5Versions with) : versions(with) {}

  /// HDF5 type for a dataset of this shape.
  [[nodiscard]] const Hdf5Handle& type(const Elements& elements, const Shape& shape);
  /// Makes a dataset and returns the offset of its bytes from the start of the file, 0 if it has none.
  [[nodiscard]] std::uint64_t create_placed(const std::string& path, hid_t type, hid_t space, hid_t creation) const;

  Hdf5Versions versions;
  SparseMemory memory;
  Hdf5Handle groups, datasets, links;
  std::array<Hdf5Handle, static_cast<std::size_t>(kLastDataType) + 1> types;  // by number
  std::map<std::pair<std::string, std::uint64_t>, Hdf5Handle> structs;        // by their members and size
  Hdf5Handle file;                                                            // last: closed first
};

/// A property list of this kind, with object times off: they would make two files of one structure differ.
[[nodiscard]] Hdf5Handle object_properties(hid_t kind);

[[nodiscard]] Hdf5Handle dataspace(const Shape& shape);

/// The dataset's shape: the bytes of a struct are not a dimension of it.
[[nodiscard]] Shape shape_in_file(const Elements& elements, const Shape& shape);

}  // namespace kedge::format
