#include "persist/manifest_builder.hpp"

#include <optional>
#include <type_traits>

#include "arrays/global_arrays.hpp"
#include "arrays/structure_hash.hpp"
#include "base/invariant.hpp"
#include "base/text.hpp"
#include "format/attributes.hpp"
#include "persist/tag_directory.hpp"

namespace kedge::persist {
namespace {

/// One row of the shard table on its way to rank 0, never stored.
struct RowRecord {
  std::uint64_t size_bytes = 0;
  std::uint64_t index_offset = 0;
  std::uint32_t index_size = 0;
  std::uint32_t index_crc = 0;
  std::uint32_t crc = 0;
  std::uint32_t logical_rank = 0;
};
static_assert(std::has_unique_object_representations_v<RowRecord>, "no byte is sent that nobody has set");

RowRecord row_of(const format::ContainerReader& container) {
  const format::Superblock& superblock = container.superblock();
  return {superblock.file_size, superblock.index_offset, static_cast<std::uint32_t>(superblock.index_size),
          superblock.index_crc, container.file_crc(),    superblock.logical_rank.value};
}

/// By logical rank, whoever sent them.
std::vector<format::ShardRow> rows_of(const std::vector<comm::Addressed<RowRecord>>& received,
                                      std::uint32_t world_size) {
  invariant(received.size() == world_size, "every rank of a commit sends one row of its manifest");
  std::vector<format::ShardRow> rows(world_size);
  for (const auto& [peer, record] : received) {
    invariant(record.logical_rank < world_size && rows[record.logical_rank].file.empty(),
              "every logical rank has one row in a manifest");
    rows[record.logical_rank] = {container_file(LogicalRank{record.logical_rank}),
                                 record.size_bytes,
                                 record.index_offset,
                                 record.index_size,
                                 record.index_crc,
                                 record.crc};
  }
  return rows;
}

}  // namespace

Manifest ManifestBuilder::build(const comm::Group& group, const format::ContainerReader& container,
                                LayoutPolicy layouts) {
  Structure structure;
  bool mine = false;
  group.run_on_all_ranks([&] {
    structure = structure_of(container.regions());
    if (group.is_root()) {
      const std::string attributes = container.attributes();
      if (!attributes.empty()) structure.attributes = format::decode_attributes(attributes, "the container of rank 0");
    }
    mine = needs_layout(group, structure);
  });
  if (group.any(mine)) {
    if (layouts == LayoutPolicy::known) {
      throw Error(ErrorCode::mismatch,
                  "its manifest has a new structure, which cannot be written in the background; the next checkpoint is "
                  "flushed instead");
    }
    make_layout(group, container, structure);
  }
  Manifest manifest;
  manifest.entry = entry_of(group, container);
  manifest.bytes = encode(group, container, manifest.entry, structure.attributes);
  return manifest;
}

ManifestBuilder::Structure ManifestBuilder::structure_of(std::span<const format::StoredRegion> regions) {
  return {arrays::structure_hash(regions, arrays::ViewedRegions::shared),
          arrays::structure_hash(regions, arrays::ViewedRegions::all),
          {}};
}

bool ManifestBuilder::has_layout_for(const comm::Group& group, std::span<const format::StoredRegion> regions,
                                     const Attributes& attributes) const {
  Structure structure = structure_of(regions);
  structure.attributes = attributes;
  return !needs_layout(group, structure);
}

/// Local.
bool ManifestBuilder::needs_layout(const comm::Group& group, const Structure& structure) const {
  if (!has_layout_) return true;
  if ((lists_ranks_ ? structure.full_hash : structure.shared_hash) != structure_hash_) return true;
  if (!group.is_root()) return false;
  return !format::can_hold_attributes(*layout_, structure.attributes);
}

/// COLLECTIVE.
void ManifestBuilder::make_layout(const comm::Group& group, const format::ContainerReader& container,
                                  const Structure& structure) {
  has_layout_ = false;
  const auto global = arrays::GlobalArrays::exchange(group, arrays::shared_regions(container.regions()));
  comm::throw_if(group.vote(global.check()));
  const std::optional<format::ManifestView> view = global.gather(group, view_shards_max_, container.regions());
  group.run_on_all_ranks([&] {
    if (!group.is_root()) return;
    std::vector<std::string> files;
    for (std::uint32_t rank = 0; rank < container.superblock().commit.world_size; ++rank) {
      files.push_back(container_file(LogicalRank{rank}));
    }
    layout_ = format::make_manifest_layout(view ? &*view : nullptr, files, structure.attributes);
  });
  if (!view && group.is_root()) {
    log_.info(
        compose("the global arrays have more than {} shards: the manifest has no HDF5 view of them; their containers "
                "have all the data",
                view_shards_max_));
  }
  lists_ranks_ = view && view->rank_regions;
  structure_hash_ = lists_ranks_ ? structure.full_hash : structure.shared_hash;
  has_layout_ = true;
}

/// COLLECTIVE.
TagEntry ManifestBuilder::entry_of(const comm::Group& group, const format::ContainerReader& container) const {
  const format::Superblock& superblock = container.superblock();
  TagEntry entry;
  entry.directory = tag_directory_name(superblock.commit);
  entry.commit = superblock.commit;
  entry.run = run_;
  entry.total_bytes = group.sum(superblock.file_size);
  return entry;
}

/// COLLECTIVE. One row of each rank goes to rank 0; of their regions nothing does.
std::vector<std::byte> ManifestBuilder::encode(const comm::Group& group, const format::ContainerReader& container,
                                               const TagEntry& entry, const Attributes& attributes) const {
  const auto received = group.exchange(std::vector<comm::Addressed<RowRecord>>{{0, row_of(container)}});
  std::vector<std::byte> bytes;
  group.run_on_all_ranks([&] {
    if (!group.is_root()) return;
    const std::vector<format::ShardRow> rows = rows_of(received, entry.commit.world_size);
    bytes = format::encode_manifest(*layout_, manifest_head_of(entry), rows, attributes);
  });
  return bytes;
}

}  // namespace kedge::persist
