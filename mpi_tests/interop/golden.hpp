// The golden files: one small commit of three ranks in every kind of file that Kedge writes, with identities and times
// that never change. As long as the format stays, they come out the same, byte for byte, where HDF5's release does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "format/manifest.hpp"
#include "format/region_spec.hpp"
#include "format/set_descriptor.hpp"
#include "format/superblock.hpp"
#include "kedge/attributes.hpp"

namespace kedge::testing {

inline constexpr std::uint32_t kGoldenRanks = 3;

struct GoldenFile {
  std::string name;  ///< below the directory of a version, such as "data/0/rank-0.h5"
  std::vector<std::byte> bytes;
};

/// Every data type, every placement, a routed file, nothing at all; rank 0 has the attributes too.
[[nodiscard]] std::vector<format::RegionSpec> golden_regions(std::uint32_t rank);
[[nodiscard]] std::vector<std::byte> golden_values(const format::RegionSpec& spec, std::uint32_t rank);
[[nodiscard]] Attributes golden_attributes();

/// Who they are; what the writers fill in is left out.
[[nodiscard]] format::Superblock golden_superblock(std::uint32_t rank);
[[nodiscard]] format::ManifestHead golden_head();
/// The set of all ranks in their order, as the one at `position` describes it; members by their rank alone.
[[nodiscard]] format::SetDescriptor golden_set(format::SetFileKind kind, std::uint32_t position);

[[nodiscard]] std::string golden_container(std::uint32_t rank);
[[nodiscard]] std::string golden_parity(std::uint32_t rank);
[[nodiscard]] std::string golden_descriptor(std::uint32_t rank);
inline constexpr const char* kGoldenManifest = "checkpoint.h5";
/// Which release of HDF5 the files were made with: its metadata is part of them.
inline constexpr const char* kGoldenHdf5 = "hdf5-release";

/// All of them, made by this build.
[[nodiscard]] std::vector<GoldenFile> make_golden_files();
/// Such as "1.10.8".
[[nodiscard]] std::string hdf5_release();

}  // namespace kedge::testing
