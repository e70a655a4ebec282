// Private to hdf5_structure and hdf5_view: an HDF5 file in this process's memory. Exposes hdf5.h, so include it there
// only.
#pragma once

#include <hdf5.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "format/hdf5_handle.hpp"
#include "format/hdf5_structure.hpp"

namespace kedge::format {

/// Sparse: bytes never written read as zeros and take no memory. It has no descriptor and no file size limit (ulimit
/// -n, -f): a close that fails inside HDF5 would keep the id of a freed file and crash at exit.
class SparseMemory {
 public:
  [[nodiscard]] std::uint64_t size_bytes() const noexcept { return size_bytes_; }
  void read(std::uint64_t offset, std::span<std::byte> bytes) const noexcept;
  /// Throws std::bad_alloc.
  void write(std::uint64_t offset, std::span<const std::byte> bytes);
  void resize(std::uint64_t size_bytes) noexcept;

  /// True if memory ran out for some of HDF5's writes, which HDF5 does not learn: the content is incomplete.
  [[nodiscard]] bool is_incomplete() const noexcept { return is_incomplete_; }
  void set_incomplete() noexcept { is_incomplete_ = true; }

 private:
  static constexpr std::uint64_t kPageBytes = 4096;
  using Page = std::array<std::byte, kPageBytes>;

  std::map<std::uint64_t, std::unique_ptr<Page>> pages_;  // by page number
  std::uint64_t size_bytes_ = 0;
  bool is_incomplete_ = false;
};

/// Makes files that are opened with this access list lie in `memory`, whatever their names; `memory` must outlive them.
/// Requires an Hdf5Lock.
void select_memory(hid_t access, SparseMemory& memory);

/// Constructed, used and destroyed under an Hdf5Lock.
struct Hdf5Scratch::Impl {
  explicit Impl(Hdf5Versions with) : versions(with) {}

  /// HDF5 type of a dataset with these elements and shape.
  [[nodiscard]] const Hdf5Handle& dataset_type(const Elements& elements, const Shape& shape);
  /// Creates a dataset and returns the file offset of its bytes; 0 if it has none.
  [[nodiscard]] std::uint64_t create_allocated_dataset(const std::string& path, hid_t type, hid_t space,
                                                       hid_t creation) const;

  Hdf5Versions versions;
  SparseMemory memory;
  Hdf5Handle groups, datasets, links;
  std::array<Hdf5Handle, static_cast<std::size_t>(kLastDataType) + 1> types;  // by data type
  std::map<std::pair<std::string, std::uint64_t>, Hdf5Handle> struct_types;   // by members and size
  Hdf5Handle file;                                                            // the last member, so closed first
};

/// A property list of this kind without object times, which would make files of one structure differ.
[[nodiscard]] Hdf5Handle make_object_properties(hid_t kind);

[[nodiscard]] Hdf5Handle make_dataspace(const Shape& shape);

/// The dataset's shape: without the last extent, the struct size, if the elements are structs.
[[nodiscard]] Shape shape_in_file(const Elements& elements, const Shape& shape);

}  // namespace kedge::format
