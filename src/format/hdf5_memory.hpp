// Private to hdf5_structure and hdf5_view: a file that HDF5 takes for one on a disk, in this process's memory. Shows
// hdf5.h; include it there only.
#pragma once

#include <hdf5.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>

namespace kedge::format {

/// Sparse: what nobody wrote takes no memory and reads as zeros. It has no descriptor, and no limit on files applies
/// (ulimit -f, -n): closing must never fail inside HDF5, which would keep the id of a freed file and crash at exit.
class SparseMemory {
 public:
  [[nodiscard]] std::uint64_t size_bytes() const noexcept { return size_bytes_; }
  void read(std::uint64_t offset, std::span<std::byte> bytes) const noexcept;
  /// Throws std::bad_alloc.
  void write(std::uint64_t offset, std::span<const std::byte> bytes);
  void resize(std::uint64_t size_bytes) noexcept;

  /// HDF5 wrote something for which there was no memory: what is here is incomplete. It is not told.
  [[nodiscard]] bool is_incomplete() const noexcept { return is_incomplete_; }
  void set_incomplete() noexcept { is_incomplete_ = true; }

 private:
  static constexpr std::uint64_t kPageBytes = 4096;
  using Page = std::array<std::byte, kPageBytes>;

  std::map<std::uint64_t, std::unique_ptr<Page>> pages_;  // by their number
  std::uint64_t size_bytes_ = 0;
  bool is_incomplete_ = false;
};

/// Files that are opened with this access list lie in `memory`, whatever their names; it must outlive them. Call it
/// under the gate.
void select_memory(hid_t access, SparseMemory& memory);

}  // namespace kedge::format
