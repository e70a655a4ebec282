// Constants of containers, parity files, set descriptors and manifests that are on disk: do not change them.
// share/doc/format.md describes them.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace kedge::format {

static_assert(std::endian::native == std::endian::little, "all fields are little-endian and copied as they are");

inline constexpr std::uint64_t kSuperblockBytes = 4096;                                   ///< the HDF5 user block
inline constexpr std::uint64_t kFileBytesMax = std::numeric_limits<std::int64_t>::max();  ///< the largest off_t
inline constexpr std::uint32_t kFormatVersion = 1;
inline constexpr std::uint32_t kIndexVersion = 1;
/// Size of a large region's blocks, each with a CRC32C.
inline constexpr std::uint64_t kBlockBytes = std::uint64_t{4} << 20U;
inline constexpr std::uint64_t kLargeRegionBytes = 65536;  ///< a region of this size is its own extent
inline constexpr std::uint64_t kAlignmentBytes = 4096;     ///< of large regions
inline constexpr std::uint64_t kIndexBytesMax = std::uint64_t{256} << 20U;
inline constexpr std::size_t kMembersBytesMax = 4096;  // a compound type must fit an HDF5 object header
inline constexpr std::size_t kTagBytesMax = 128;
inline constexpr char kAttributesName[] = ".kedge/attributes";  ///< region of logical rank 0: JSON, padded with spaces
inline constexpr std::size_t kNameBytesMax = 1024;
inline constexpr std::size_t kTableEntriesMax = 84;
inline constexpr std::size_t kTableEntryBytes = 24;

inline constexpr std::array<unsigned char, 8> kMagic{'K', 'E', 'D', 'G', 'E', '\r', '\n', 0x1a};

inline constexpr std::uint32_t kSetVersion = 1;
inline constexpr std::size_t kSetMembersMax = 128;
inline constexpr std::size_t kSetMemberBytes = 16;
/// Shares at most half of its bytes with the container's, so that a flipped byte does not turn one into the other.
inline constexpr std::array<unsigned char, 8> kSetMagic{'K', 'P', 'S', 'E', 'T', '\r', '\n', 0x1a};

inline constexpr std::uint32_t kManifestVersion = 1;
inline constexpr std::size_t kRunNameBytesMax = 64;
inline constexpr std::size_t kShardFileBytesMax = 32;
inline constexpr std::size_t kShardRowBytes = 64;
/// Differs from the other two as much as they differ from each other.
inline constexpr std::array<unsigned char, 8> kManifestMagic{'K', 'M', 'A', 'I', 'N', '\r', '\n', 0x1a};

consteval std::size_t count_differences(const std::array<unsigned char, 8>& one,
                                        const std::array<unsigned char, 8>& other) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < one.size(); ++i) count += one[i] == other[i] ? 0U : 1U;
  return count;
}
static_assert(count_differences(kSetMagic, kMagic) >= 4);
static_assert(count_differences(kManifestMagic, kMagic) >= 4 && count_differences(kManifestMagic, kSetMagic) >= 4);

/// Containers have metadata, index and data; manifests have metadata, shards and attributes.
enum class ExtentKind : std::uint32_t { metadata = 1, index = 2, data = 3, shards = 4, attributes = 5 };

/// Offsets of the superblock's fields.
namespace at {
inline constexpr std::size_t kMagic = 0;
inline constexpr std::size_t kVersion = 8;
inline constexpr std::size_t kSealed = 12;
inline constexpr std::size_t kRunId = 16;
inline constexpr std::size_t kCommitId = 32;
inline constexpr std::size_t kParentCommitId = 48;
inline constexpr std::size_t kGeneration = 64;
inline constexpr std::size_t kIncarnation = 72;
inline constexpr std::size_t kLogicalRank = 80;
inline constexpr std::size_t kWorldSize = 84;
inline constexpr std::size_t kTimeNs = 88;
inline constexpr std::size_t kFileSize = 96;
inline constexpr std::size_t kIndexOffset = 104;
inline constexpr std::size_t kIndexSize = 112;
inline constexpr std::size_t kIndexCrc = 120;
inline constexpr std::size_t kTagSize = 124;
inline constexpr std::size_t kTag = 128;
inline constexpr std::size_t kIsOutput = 256;
inline constexpr std::size_t kTableSize = 2056;
inline constexpr std::size_t kTable = 2064;
inline constexpr std::size_t kCrc = 4092;
}  // namespace at

/// Offsets of the fields in a set descriptor, which also begins a parity file.
namespace set_at {
inline constexpr std::size_t kMagic = 0;
inline constexpr std::size_t kVersion = 8;
inline constexpr std::size_t kSealed = 12;
inline constexpr std::size_t kRunId = 16;
inline constexpr std::size_t kCommitId = 32;
inline constexpr std::size_t kProtectionId = 48;
inline constexpr std::size_t kGeneration = 64;
inline constexpr std::size_t kSetNumber = 72;
inline constexpr std::size_t kKind = 80;
inline constexpr std::size_t kScheme = 84;
inline constexpr std::size_t kWorldSize = 88;
inline constexpr std::size_t kPosition = 92;
inline constexpr std::size_t kParityBytes = 96;
inline constexpr std::size_t kParityCrc = 104;
inline constexpr std::size_t kMembers = 108;
inline constexpr std::size_t kParities = 112;
inline constexpr std::size_t kCoefficients = 116;
inline constexpr std::size_t kFieldsEnd = 120;
inline constexpr std::size_t kTable = 256;
inline constexpr std::size_t kCrc = 4092;
}  // namespace set_at

/// Offsets of the fields in a manifest's head.
namespace manifest_at {
inline constexpr std::size_t kMagic = 0;
inline constexpr std::size_t kVersion = 8;
inline constexpr std::size_t kSealed = 12;
inline constexpr std::size_t kRunId = 16;
inline constexpr std::size_t kCommitId = 32;
inline constexpr std::size_t kParentCommitId = 48;
inline constexpr std::size_t kGeneration = 64;
inline constexpr std::size_t kIncarnation = 72;
inline constexpr std::size_t kWorldSize = 80;
inline constexpr std::size_t kHasView = 84;
inline constexpr std::size_t kTimeNs = 88;
inline constexpr std::size_t kFileSize = 96;
inline constexpr std::size_t kTotalBytes = 104;
inline constexpr std::size_t kShardsOffset = 112;
inline constexpr std::size_t kAttributesOffset = 120;
inline constexpr std::size_t kAttributesSize = 128;
inline constexpr std::size_t kTagSize = 136;
inline constexpr std::size_t kRunSize = 140;
inline constexpr std::size_t kTag = 144;
inline constexpr std::size_t kRun = 272;
inline constexpr std::size_t kIsOutput = 336;
inline constexpr std::size_t kFieldsEnd = 340;
inline constexpr std::size_t kTableSize = 2056;
inline constexpr std::size_t kTable = 2064;
inline constexpr std::size_t kCrc = 4092;
}  // namespace manifest_at

/// Offsets of the columns of a manifest's shard table.
namespace row_at {
inline constexpr std::size_t kFile = 0;
inline constexpr std::size_t kSizeBytes = 32;
inline constexpr std::size_t kIndexOffset = 40;
inline constexpr std::size_t kIndexSize = 48;
inline constexpr std::size_t kIndexCrc = 52;
inline constexpr std::size_t kCrc = 56;
inline constexpr std::size_t kRowCrc = 60;
}  // namespace row_at

static_assert(set_at::kFieldsEnd <= set_at::kTable);
static_assert(set_at::kTable + kSetMembersMax * kSetMemberBytes <= set_at::kCrc);
static_assert(set_at::kCrc + 4 == kSuperblockBytes);
static_assert(set_at::kVersion == at::kVersion && set_at::kCrc == at::kCrc, "the version is found before the kind is");

static_assert(at::kTag + kTagBytesMax <= 512, "512-519, 1024-1031 and 2048-2055 stay zero: HDF5 looks there");
static_assert(at::kTableSize >= 2056);
static_assert(at::kTable + kTableEntriesMax * kTableEntryBytes <= at::kCrc);
static_assert(at::kCrc + 4 == kSuperblockBytes);
static_assert(manifest_at::kTag + kTagBytesMax == manifest_at::kRun);
static_assert(manifest_at::kRun + kRunNameBytesMax == manifest_at::kIsOutput);
static_assert(manifest_at::kIsOutput + 4 == manifest_at::kFieldsEnd);
static_assert(manifest_at::kFieldsEnd <= 512, "512-519, 1024-1031 and 2048-2055 stay zero: HDF5 looks there");
static_assert(manifest_at::kTableSize == at::kTableSize && manifest_at::kTable == at::kTable,
              "one table, written by one piece");
static_assert(manifest_at::kTable + kTableEntriesMax * kTableEntryBytes <= manifest_at::kCrc);
static_assert(manifest_at::kVersion == at::kVersion && manifest_at::kCrc == at::kCrc, "as for the set's description");
static_assert(row_at::kFile + kShardFileBytesMax == row_at::kSizeBytes && row_at::kRowCrc + 4 == kShardRowBytes);
static_assert(kLargeRegionBytes % kAlignmentBytes == 0 && kBlockBytes % kAlignmentBytes == 0);

}  // namespace kedge::format
