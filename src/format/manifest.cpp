#include "format/manifest.hpp"

#include <algorithm>
#include <cstring>

#include "base/attempt.hpp"
#include "base/text.hpp"
#include "checksum/crc32c.hpp"
#include "format/attributes.hpp"
#include "format/fields.hpp"
#include "format/manifest_layout.hpp"
#include "format/manifest_rows.hpp"

namespace kedge::format {
namespace {

void fill_table(const ManifestLayout& layout, const Id128& commit_id, std::span<const ShardRow> rows,
                std::span<std::byte> table) {
  for (std::uint32_t rank = 0; rank < rows.size(); ++rank) {
    if (rows[rank].file != layout.shard_files[rank]) {
      refuse(ErrorCode::invalid_argument,
             kedge::compose("the container of rank {} is '{}', but the manifest was laid out for '{}'", rank,
                            rows[rank].file, layout.shard_files[rank]));
    }
    encode_row(rows[rank], {commit_id, LogicalRank{rank}}, table.subspan(rank * kShardRowBytes, kShardRowBytes));
  }
}

// Returns the size without padding.
std::size_t fill_attributes(const Attributes& attributes, std::span<std::byte> room) {
  if (room.empty()) return 0;
  const std::string text = encode_attributes(attributes);
  std::memcpy(room.data(), text.data(), text.size());
  std::ranges::fill(room.subspan(text.size()), std::byte{' '});
  return text.size();
}

// HDF5's metadata is the same in every commit of a layout, except for the attributes' values.
bool is_changing(const ManifestLayout& layout, const Extent& extent) {
  if (extent.kind != ExtentKind::metadata) return true;
  return std::ranges::any_of(layout.shown_attributes, [&](const Hdf5Attribute& attribute) {
    return attribute.offset >= extent.offset && attribute.offset - extent.offset < extent.length;
  });
}

ManifestHead read_head(fs::ByteAccess& bytes, std::uint64_t file_size, const std::string& path) {
  if (file_size < kSuperblockBytes)
    throw_corrupt(path, kedge::compose("not a Kedge manifest: it has only {} bytes", file_size));
  SuperblockBytes stored{};
  bytes.read(0, stored);
  ManifestHead head = decode_manifest_head(stored, path);
  if (head.file_size != file_size) {
    throw_corrupt(path, kedge::compose("the manifest was written with {} bytes and now has {}: {}", head.file_size,
                                       file_size, file_size < head.file_size ? "truncated" : "bytes were appended"));
  }
  return head;
}

const Extent& extent_of(const ManifestHead& head, ExtentKind kind) {
  return *std::ranges::find(head.extents, kind, &Extent::kind);  // decode_manifest_head requires one of each kind
}

// The damaged parts of an extent, as far as they can be named.
std::vector<Damage> damages_of(fs::ByteAccess& bytes, const ManifestHead& head, const Extent& extent) {
  if (extent.kind == ExtentKind::attributes) return {{"attributes", extent.offset, extent.length}};
  if (extent.kind != ExtentKind::shards) return {{"HDF5 metadata", extent.offset, extent.length}};
  std::vector<std::byte> stored(extent.length);
  bytes.read(extent.offset, stored);
  std::vector<Damage> damages;
  for (std::uint32_t rank = 0; rank < head.commit.world_size; ++rank) {
    const std::uint64_t place = rank * std::uint64_t{kShardRowBytes};
    const auto row = std::span<const std::byte>(stored).subspan(place, kShardRowBytes);
    if (row_crc(row, {head.commit.id, LogicalRank{rank}}) == get_field<std::uint32_t>(row, row_at::kRowCrc)) continue;
    damages.push_back(
        {kedge::compose("row of rank {} in the shard table", rank), extent.offset + place, kShardRowBytes});
  }
  return damages;
}

}  // namespace

bool can_hold_attributes(const ManifestLayout& layout, const Attributes& attributes) {
  const std::size_t wanted = attributes.empty() ? 0 : encode_attributes(attributes).size();
  return wanted <= layout.attributes_capacity_bytes && can_hold_values(layout.shown_attributes, attributes);
}

std::vector<std::byte> encode_manifest(const ManifestLayout& layout, ManifestHead head, std::span<const ShardRow> rows,
                                       const Attributes& attributes) {
  if (rows.size() != layout.shard_files.size() || head.commit.world_size != rows.size()) {
    refuse(ErrorCode::invalid_argument, kedge::compose("a manifest laid out for {} ranks got {} rows and world size {}",
                                                       layout.shard_files.size(), rows.size(), head.commit.world_size));
  }
  if (auto problem = check_attributes(attributes)) throw Error(*std::move(problem));
  if (!can_hold_attributes(layout, attributes)) {
    refuse(ErrorCode::invalid_argument, "the manifest was laid out for other attributes; create a new layout");
  }
  std::vector<std::byte> file = layout.file;
  const auto room = std::span(file).subspan(layout.attributes_offset, layout.attributes_capacity_bytes);
  fill_table(layout, head.commit.id, rows, std::span(file).subspan(layout.table_offset, rows.size() * kShardRowBytes));
  head.attributes_size = fill_attributes(attributes, room);
  write_values(layout.shown_attributes, attributes, file);
  head.attributes_offset = layout.attributes_offset;
  head.table_offset = layout.table_offset;
  head.file_size = file.size();
  head.has_view = layout.has_view;
  head.extents = layout.extents;
  for (Extent& extent : head.extents) {
    if (is_changing(layout, extent)) extent.crc = crc32c(std::span(file).subspan(extent.offset, extent.length));
  }
  std::ranges::copy(encode_manifest_head(head), file.begin());
  return file;
}

ManifestReader::ManifestReader(fs::ByteAccess& bytes, std::uint64_t file_size, std::string path)
    : bytes_(bytes), path_(std::move(path)), head_(read_head(bytes, file_size, path_)) {}

ShardRow ManifestReader::row(LogicalRank logical_rank) const {
  if (logical_rank.value >= head_.commit.world_size) {
    refuse(ErrorCode::not_found,
           kedge::compose("the commit has {} ranks, there is no rank {}", head_.commit.world_size, logical_rank.value),
           path_);
  }
  std::array<std::byte, kShardRowBytes> stored{};
  bytes_.read(head_.table_offset + logical_rank.value * std::uint64_t{kShardRowBytes}, stored);
  return decode_row(stored, {head_.commit.id, logical_rank}, path_);
}

std::vector<ShardRow> ManifestReader::rows() const {
  std::vector<std::byte> stored(head_.commit.world_size * std::uint64_t{kShardRowBytes});
  bytes_.read(head_.table_offset, stored);
  std::vector<ShardRow> rows;
  for (std::uint32_t rank = 0; rank < head_.commit.world_size; ++rank) {
    const auto bytes = std::span(stored).subspan(rank * kShardRowBytes, kShardRowBytes);
    rows.push_back(decode_row(bytes, {head_.commit.id, LogicalRank{rank}}, path_));
  }
  return rows;
}

Attributes ManifestReader::attributes() const {
  if (head_.attributes_offset == 0) return {};
  const Extent& extent = extent_of(head_, ExtentKind::attributes);
  std::string text(extent.length, ' ');
  if (bytes_.read_with_crc(extent.offset, std::as_writable_bytes(std::span(text)), 0) != extent.crc) {
    throw_corrupt(path_, "the checksum of the manifest's attributes is wrong; the manifest is damaged");
  }
  return decode_attributes(std::string_view(text).substr(0, head_.attributes_size), path_);
}

std::vector<Damage> ManifestReader::verify(const std::function<void(std::uint64_t)>& on_progress) const {
  const auto report = [&](std::uint64_t bytes) {
    if (on_progress) on_progress(bytes);
  };
  std::vector<Damage> damages;
  // The constructor checked the head, but the file may have changed since.
  if (bytes_.checksum(0, kSuperblockBytes, 0) != crc32c(encode_manifest_head(head_))) {
    damages.push_back({"manifest head", 0, kSuperblockBytes});
  }
  report(kSuperblockBytes);
  for (const Extent& extent : head_.extents) {
    // The rows' own checksums locate damage better than the table's.
    if (extent.kind == ExtentKind::shards || bytes_.checksum(extent.offset, extent.length, 0) != extent.crc) {
      std::ranges::move(damages_of(bytes_, head_, extent), std::back_inserter(damages));
    }
    report(extent.length);
  }
  return damages;
}

}  // namespace kedge::format
