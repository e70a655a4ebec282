#include "format/superblock.hpp"

#include <algorithm>
#include <cstring>

#include "base/text.hpp"
#include "checksum/crc32c.hpp"
#include "commits/head_check.hpp"
#include "format/fields.hpp"
#include "kedge/error.hpp"

namespace kedge::format {
namespace {

static_assert(kTagBytesMax == commits::kTagBytesMax);

// Requires that the table is sorted and inside the file, and that exactly one extent holds the index.
void check_table(const Superblock& superblock, std::string_view path) {
  std::uint64_t end = kSuperblockBytes;
  std::size_t indexes = 0;
  for (const Extent& extent : superblock.extents) {
    const bool known = extent.kind == ExtentKind::metadata || extent.kind == ExtentKind::index;
    if (!known || extent.length == 0 || extent.offset < end || extent.offset > superblock.file_size ||
        extent.length > superblock.file_size - extent.offset) {
      throw_corrupt(path, "the superblock's table of extents is inconsistent; the container is damaged");
    }
    end = extent.offset + extent.length;
    if (extent.kind != ExtentKind::index) continue;
    ++indexes;
    if (extent.offset != superblock.index_offset || superblock.index_size > extent.length ||
        superblock.index_size > kIndexBytesMax) {
      throw_corrupt(path, "the superblock's offset of the index is inconsistent; the container is damaged");
    }
  }
  if (indexes != 1) throw_corrupt(path, "the superblock does not name exactly one index; the container is damaged");
}

void check_superblock_header(std::span<const std::byte> bytes, std::string_view path) {
  if (bytes.size() < kSuperblockBytes) throw_corrupt(path, "not a Kedge container: shorter than its superblock");
  if (is_unsealed(bytes)) throw_corrupt(path, "not a sealed Kedge container: it was retired or never finished");
  if (std::memcmp(bytes.data(), kMagic.data(), kMagic.size()) != 0) {
    throw_corrupt(path, "not a Kedge container: bad magic number");
  }
  if (crc32c(bytes.first(at::kCrc)) != get_field<std::uint32_t>(bytes, at::kCrc)) {
    throw_corrupt(path, "the superblock's checksum is wrong; the container is damaged");
  }
  const auto version = get_field<std::uint32_t>(bytes, at::kVersion);
  if (const auto problem = check_version("format version", version, kFormatVersion)) throw_corrupt(path, *problem);
  if (get_field<std::uint32_t>(bytes, at::kSealed) != 1) {
    throw_corrupt(path, "not a sealed Kedge container: the sealed flag is invalid");
  }
}

}  // namespace

void put_extents(std::span<std::byte> bytes, std::span<const Extent> extents) {
  put_field(bytes, at::kTableSize, static_cast<std::uint32_t>(extents.size()));
  std::size_t place = at::kTable;
  for (const Extent& extent : extents) {
    put_field(bytes, place, extent.kind);
    put_field(bytes, place + 4, extent.crc);
    put_field(bytes, place + 8, extent.offset);
    put_field(bytes, place + 16, extent.length);
    place += kTableEntryBytes;
  }
}

std::vector<Extent> get_extents(std::span<const std::byte> bytes, std::size_t count) {
  std::vector<Extent> extents;
  for (std::size_t place = at::kTable; extents.size() < count; place += kTableEntryBytes) {
    extents.push_back({get_field<ExtentKind>(bytes, place), get_field<std::uint32_t>(bytes, place + 4),
                       get_field<std::uint64_t>(bytes, place + 8), get_field<std::uint64_t>(bytes, place + 16)});
  }
  return extents;
}

SuperblockBytes encode_superblock(const Superblock& superblock) {
  if (superblock.commit.tag.size() > kTagBytesMax) {
    throw Error(ErrorCode::invalid_argument, kedge::compose("tag '{}' is longer than {} bytes; use a shorter one",
                                                            superblock.commit.tag, kTagBytesMax));
  }
  if (superblock.extents.size() > kTableEntriesMax) {
    throw Error(ErrorCode::invalid_argument,
                kedge::compose("{} extents of HDF5 metadata do not fit into the superblock's table of {}; use fewer or "
                               "shorter region names",
                               superblock.extents.size(), kTableEntriesMax));
  }
  SuperblockBytes bytes{};
  put_field(bytes, at::kMagic, kMagic);
  put_field(bytes, at::kVersion, kFormatVersion);
  put_field(bytes, at::kSealed, std::uint32_t{superblock.is_sealed ? 1U : 0U});
  put_field(bytes, at::kRunId, superblock.commit.run_id.bytes);
  put_field(bytes, at::kCommitId, superblock.commit.id.bytes);
  put_field(bytes, at::kParentCommitId, superblock.commit.parent_id.bytes);
  put_field(bytes, at::kGeneration, superblock.commit.generation);
  put_field(bytes, at::kIncarnation, superblock.commit.incarnation);
  put_field(bytes, at::kLogicalRank, superblock.logical_rank.value);
  put_field(bytes, at::kWorldSize, superblock.commit.world_size);
  put_field(bytes, at::kTimeNs, superblock.commit.time_ns);
  put_field(bytes, at::kFileSize, superblock.file_size);
  put_field(bytes, at::kIndexOffset, superblock.index_offset);
  put_field(bytes, at::kIndexSize, superblock.index_size);
  put_field(bytes, at::kIndexCrc, superblock.index_crc);
  put_field(bytes, at::kTagSize, static_cast<std::uint32_t>(superblock.commit.tag.size()));
  std::memcpy(bytes.data() + at::kTag, superblock.commit.tag.data(), superblock.commit.tag.size());
  put_field(bytes, at::kIsOutput, std::uint32_t{superblock.commit.is_output ? 1U : 0U});
  put_extents(bytes, superblock.extents);
  put_field(bytes, at::kCrc, crc32c(std::span(bytes).first(at::kCrc)));
  return bytes;
}

Superblock decode_superblock(std::span<const std::byte> bytes, std::string_view path) {
  check_superblock_header(bytes, path);
  bytes = bytes.first(kSuperblockBytes);
  Superblock superblock;
  superblock.is_sealed = true;
  superblock.commit.run_id.bytes = get_field<std::array<std::uint8_t, 16>>(bytes, at::kRunId);
  superblock.commit.id.bytes = get_field<std::array<std::uint8_t, 16>>(bytes, at::kCommitId);
  superblock.commit.parent_id.bytes = get_field<std::array<std::uint8_t, 16>>(bytes, at::kParentCommitId);
  superblock.commit.generation = get_field<std::uint64_t>(bytes, at::kGeneration);
  superblock.commit.incarnation = get_field<std::uint64_t>(bytes, at::kIncarnation);
  superblock.logical_rank.value = get_field<std::uint32_t>(bytes, at::kLogicalRank);
  superblock.commit.world_size = get_field<std::uint32_t>(bytes, at::kWorldSize);
  superblock.commit.time_ns = get_field<std::int64_t>(bytes, at::kTimeNs);
  superblock.file_size = get_field<std::uint64_t>(bytes, at::kFileSize);
  superblock.index_offset = get_field<std::uint64_t>(bytes, at::kIndexOffset);
  superblock.index_size = get_field<std::uint64_t>(bytes, at::kIndexSize);
  superblock.index_crc = get_field<std::uint32_t>(bytes, at::kIndexCrc);

  const auto is_output = get_field<std::uint32_t>(bytes, at::kIsOutput);
  superblock.commit.is_output = is_output == 1;
  const auto tag_size = get_field<std::uint32_t>(bytes, at::kTagSize);
  const auto table_size = get_field<std::uint32_t>(bytes, at::kTableSize);
  if (tag_size > kTagBytesMax || is_output > 1 || table_size > kTableEntriesMax) {
    throw_corrupt(path, "the superblock's fields are invalid; the container is damaged");
  }
  for (const std::byte letter : bytes.subspan(at::kTag, tag_size)) superblock.commit.tag += static_cast<char>(letter);
  if (const auto what = commits::check_head(superblock.commit)) {
    throw_corrupt(path, kedge::compose("the superblock's fields are invalid: {}; the container is damaged", *what));
  }
  superblock.extents = get_extents(bytes, table_size);
  check_table(superblock, path);
  return superblock;
}

bool is_unsealed(std::span<const std::byte> bytes) noexcept {
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte byte) { return byte == std::byte{0}; });
}

}  // namespace kedge::format
