// A store's directory with containers as a job leaves them, for tests of programs that read them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "format/region_spec.hpp"
#include "format/superblock.hpp"

namespace kedge::testing {

/// A temporary run directory on the real file system, removed with all that is in it when destroyed.
class SampleStore {
 public:
  SampleStore();
  ~SampleStore();
  SampleStore(const SampleStore&) = delete;
  SampleStore& operator=(const SampleStore&) = delete;

  [[nodiscard]] const std::string& directory() const noexcept { return directory_; }
  [[nodiscard]] std::string path(const std::string& name) const { return directory_ + "/" + name; }

  /// Writes a sealed container with these regions under this name, and returns its path. Contents are a pattern.
  std::string add(const std::string& name, const std::vector<format::RegionSpec>& regions,
                  const format::Superblock& identity) const;
  /// Writes any file.
  std::string add_file(const std::string& name, std::size_t size_bytes, char fill) const;

 private:
  std::string directory_;
};

/// Writes a sealed container with these regions to `path`, in place of what is there. Contents are a pattern, another
/// one for each `variant`.
void write_container(const std::string& path, const std::vector<format::RegionSpec>& regions,
                     const format::Superblock& identity, unsigned variant = 0);

/// Regions of every DataType, 0-d to 8-d, own, shard, replicated, routed, empty, and one of 5 MiB.
[[nodiscard]] std::vector<format::RegionSpec> sample_regions();
/// "step-000100", generation 7, of rank 2 of 8.
[[nodiscard]] format::Superblock sample_identity();

/// Flips one bit of a file in place.
void flip_bit(const std::string& path, std::uint64_t offset);
void truncate(const std::string& path, std::uint64_t size_bytes);
[[nodiscard]] std::uint64_t file_size(const std::string& path);

}  // namespace kedge::testing
