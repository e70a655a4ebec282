// Makes the HDF5 structure of a container or manifest, in a scratch file without data. Only here does Kedge use HDF5.
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

/// The oldest HDF5 that can read the file: virtual datasets need 1.10. A v1_10 file can have attributes whose values
/// are overwritten later, because its root group has an old object header without checksum.
enum class Hdf5Versions : std::uint8_t { v1_8, v1_10 };

struct Elements {
  DataType dtype = DataType::opaque;
  std::string_view members = {};  ///< members of structs (members.hpp), whose size is then the last extent of a shape
};

/// A part of a virtual dataset: its block there, and the file and shape of the source dataset.
struct VirtualPart {
  std::string_view file;
  Shape offset;
  Shape shape;
};

/// An HDF5 file in sparse memory: datasets are allocated, but not written. Every call takes the process-wide HDF5
/// mutex, keeps the application's setting for error printing, and throws Error{io} with HDF5's message. The result
/// depends only on the sequence of calls, not on time or machine.
class Hdf5Scratch {
 public:
  /// Metadata is allocated in blocks of `meta_block_bytes`. Throws Error{bad_state} if the HDF5 library at run time is
  /// not the version that Kedge was built with, since HDF5 would abort the process.
  explicit Hdf5Scratch(std::uint64_t meta_block_bytes, Hdf5Versions versions = Hdf5Versions::v1_8);
  ~Hdf5Scratch();
  Hdf5Scratch(const Hdf5Scratch&) = delete;
  Hdf5Scratch& operator=(const Hdf5Scratch&) = delete;

  /// Creates a group; its parent must exist.
  void create_group(const std::string& path);
  /// Creates a dataset in an existing group. Returns the file offset of its bytes; 0 if it has none.
  std::uint64_t create_dataset(const std::string& path, const Elements& elements, const Shape& shape);
  /// Creates a contiguous table of `rows` rows with the named columns of on_disk.hpp's row_at, in an existing group.
  /// Returns its offset.
  std::uint64_t create_shard_table(const std::string& path, std::uint64_t rows);
  /// Creates a UTF-8 string of `size_bytes`, padded with spaces, in an existing group. Returns its offset.
  std::uint64_t create_text(const std::string& path, std::uint64_t size_bytes);
  /// Creates a dataset without storage, in an existing group. It shows the dataset `source` of each part's file at the
  /// part's block, and `fill` (one element; zero if empty) elsewhere and where files are missing. Parts have elements
  /// and as many dimensions as `shape`, at least one.
  void create_virtual(const std::string& path, const Elements& elements, const Shape& shape, const std::string& source,
                      const std::vector<VirtualPart>& parts, std::span<const std::byte> fill);
  /// Creates an attribute of the root group of a v1_10 file; `value` is as long as the attribute's space.
  void create_attribute(const Hdf5Attribute& attribute, std::span<const std::byte> value);
  /// Creates a link to the object `target` of another file, in an existing group.
  void create_external_link(const std::string& path, const std::string& file, const std::string& target);
  /// Closes the file and opens it again with larger metadata blocks.
  void reopen(std::uint64_t meta_block_bytes);
  /// Closes the file and returns its size. Only read() may be called afterwards.
  [[nodiscard]] std::uint64_t close();
  /// Reads raw bytes of the closed file.
  void read(std::uint64_t offset, std::span<std::byte> bytes) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Number of HDF5 calls by this process; for tests that expect none.
[[nodiscard]] std::uint64_t hdf5_call_count() noexcept;

/// Throws Error{bad_state} if the versions (major, minor, release) differ.
void check_hdf5_version(const std::array<unsigned, 3>& built_with, const std::array<unsigned, 3>& linked);

}  // namespace kedge::format
