// The only user of the HDF5 library: makes the structure of a container in a scratch file that holds no data.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "kedge/types.hpp"

namespace kedge::format {

/// An HDF5 file in anonymous memory, sparse: datasets get their place but no bytes. Every call takes the
/// process-wide HDF5 mutex, leaves the application's error-printing setting as it was, and throws Error{io} with
/// HDF5's own words. What it makes depends on the sequence of calls alone, not on time or machine.
class Hdf5Scratch {
 public:
  /// Metadata is allocated in blocks of `meta_block_bytes`. Throws Error{bad_state} if the library at run time is
  /// not the one Kedge was built with (it would abort the process).
  explicit Hdf5Scratch(std::uint64_t meta_block_bytes);
  ~Hdf5Scratch();
  Hdf5Scratch(const Hdf5Scratch&) = delete;
  Hdf5Scratch& operator=(const Hdf5Scratch&) = delete;

  /// Its parent must exist.
  void create_group(const std::string& path);
  /// Its group must exist. Returns the offset of its bytes from the start of the file, 0 if it has none.
  std::uint64_t create_dataset(const std::string& path, DataType dtype, const Shape& shape);
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
[[nodiscard]] std::uint64_t hdf5_entries() noexcept;

/// Throws Error{bad_state} if the versions (major, minor, release) differ.
void check_hdf5_version(const std::array<unsigned, 3>& built_with, const std::array<unsigned, 3>& linked);

}  // namespace kedge::format
