// The only user of the HDF5 library: makes the structure of a container or manifest in a scratch file that holds no
// data.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "format/hdf5_attributes.hpp"
#include "kedge/types.hpp"

namespace kedge::format {

/// The oldest HDF5 that reads the file: virtual datasets need 1.10. In such a file attributes can be created, and their
/// values overwritten: the root group's header is of the old form, which has no checksum of its own.
enum class Hdf5Versions : std::uint8_t { v1_8, v1_10 };

/// Element type of a dataset.
struct Elements {
  DataType dtype = DataType::opaque;
  std::string_view members = {};  ///< of structs (members.hpp): the last extent of shapes is then their size
};

/// A part of a virtual dataset: where it lies there, and in which file the dataset of this shape is that holds it.
struct VirtualPart {
  std::string_view file;
  Shape offset;
  Shape shape;
};

/// An HDF5 file in anonymous memory, sparse: datasets get their place but no bytes. Every call takes the
/// process-wide HDF5 mutex, leaves the application's error-printing setting as it was, and throws Error{io} with
/// HDF5's own words. What it makes depends on the sequence of calls alone, not on time or machine.
class Hdf5Scratch {
 public:
  /// Metadata is allocated in blocks of `meta_block_bytes`. Throws Error{bad_state} if the library at run time is
  /// not the one Kedge was built with (it would abort the process).
  explicit Hdf5Scratch(std::uint64_t meta_block_bytes, Hdf5Versions versions = Hdf5Versions::v1_8);
  ~Hdf5Scratch();
  Hdf5Scratch(const Hdf5Scratch&) = delete;
  Hdf5Scratch& operator=(const Hdf5Scratch&) = delete;

  /// Creates a group; its parent must exist.
  void create_group(const std::string& path);
  /// Creates a dataset; its group must exist. Returns the offset of its bytes from the start of the file, 0 if it has
  /// none.
  std::uint64_t create_dataset(const std::string& path, const Elements& elements, const Shape& shape);
  /// A contiguous table of `rows` rows as on_disk.hpp's row_at places their columns, named and typed. Its group must
  /// exist. Returns its offset.
  std::uint64_t create_shard_table(const std::string& path, std::uint64_t rows);
  /// One UTF-8 string of `size_bytes`, padded with spaces. Its group must exist. Returns its offset.
  std::uint64_t create_text(const std::string& path, std::uint64_t size_bytes);
  /// A dataset without storage that shows `source` (a path) of each part's file in that part's place, and `fill`, one
  /// element (zero if empty), elsewhere and where such a file is missing. Parts have elements and as many dimensions as
  /// `shape`, at least one. Its group must exist.
  void create_virtual(const std::string& path, const Elements& elements, const Shape& shape, const std::string& source,
                      const std::vector<VirtualPart>& parts, std::span<const std::byte> fill);
  /// An attribute of the root group of a file for 1.10, with this value, as long as its room.
  void create_attribute(const Hdf5Attribute& attribute, std::span<const std::byte> value);
  /// A link to the object `target` of another file. Its group must exist.
  void create_external_link(const std::string& path, const std::string& file, const std::string& target);
  /// Closes the file and opens it again, to go on with larger metadata blocks.
  void reopen(std::uint64_t meta_block_bytes);
  /// Closes HDF5's side and returns the size of the file; then only read() is left.
  [[nodiscard]] std::uint64_t close();
  /// Raw bytes of the scratch file; call it after close().
  void read(std::uint64_t offset, std::span<std::byte> bytes) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// How often this process has gone into the HDF5 library so far; for tests that hold "no HDF5 call".
[[nodiscard]] std::uint64_t hdf5_call_count() noexcept;

/// Throws Error{bad_state} if the versions (major, minor, release) differ.
void check_hdf5_version(const std::array<unsigned, 3>& built_with, const std::array<unsigned, 3>& linked);

}  // namespace kedge::format
