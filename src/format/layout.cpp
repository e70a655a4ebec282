#include "format/layout.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "checksum/crc32c.hpp"
#include "format/index.hpp"

namespace kedge::format {
namespace {

// These determine the offsets of regions; readers do not depend on them.
constexpr std::uint64_t kFirstMetaBlockBytes = 16384;
constexpr std::uint64_t kMetadataOfRegionBytes = 384;  // object header, link, share of the group's heap and B-tree
constexpr std::uint64_t kMetadataOfGroupBytes = 512;
constexpr std::uint64_t kMetadataOfMembers = 8;  // for each character of a struct's description

constexpr std::string_view kIndexGroup = ".kedge";
constexpr std::string_view kIndexDataset = ".kedge/index";

struct Piece {
  std::uint64_t offset;
  std::uint64_t length;
  bool is_index;
};

std::uint64_t round_up(std::uint64_t value, std::uint64_t unit) { return (value + unit - 1) / unit * unit; }

std::vector<Piece> pieces_of(const std::vector<StoredRegion>& regions) {
  std::vector<Piece> pieces;
  for (const StoredRegion& region : regions) {
    if (region.size_bytes != 0) pieces.push_back({region.offset, region.size_bytes, false});
  }
  return pieces;
}

void sort_pieces(std::vector<Piece>& pieces) {
  std::sort(pieces.begin(), pieces.end(), [](const Piece& a, const Piece& b) { return a.offset < b.offset; });
}

// Upper bound of the index's size, whichever gaps turn out to be padding: a run of small regions ends only at a gap or
// a large region, and padding may need blocks of its own.
std::uint64_t index_capacity(const std::vector<StoredRegion>& regions, std::uint64_t meta_block_bytes) {
  std::vector<Piece> pieces = pieces_of(regions);
  sort_pieces(pieces);
  std::uint64_t extents = 0;
  std::uint64_t checksums = meta_block_bytes / kBlockBytes + 2;
  std::uint64_t end = 0;
  bool run_open = false;
  for (const Piece& piece : pieces) {
    const bool large = piece.length >= kLargeRegionBytes;
    const std::uint64_t gap = end == 0 ? 0 : piece.offset - end;
    if (large || !run_open || gap != 0) {
      ++extents;
      ++checksums;
    }
    checksums += large ? piece.length / kBlockBytes + 1 : 1;
    checksums += gap / kBlockBytes + (gap == 0 ? 0 : 1);
    run_open = !large;
    end = piece.offset + piece.length;
  }
  return round_up(index_size_bound(regions, extents, checksums), kAlignmentBytes);
}

bool all_zero(const std::vector<std::byte>& bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte byte) { return byte == std::byte{0}; });
}

// Bytes between the pieces are HDF5 metadata or, if all zero, padding of the extent before them.
void divide_into_extents(Layout& layout, const Hdf5Scratch& scratch, std::vector<Piece> pieces) {
  sort_pieces(pieces);
  pieces.push_back({layout.file_size, 0, false});
  std::uint64_t end = kSuperblockBytes;
  for (const Piece& piece : pieces) {
    if (piece.offset < end) throw Error(ErrorCode::io, "HDF5 placed two regions in the same bytes; please report this");
    if (piece.offset > end) {
      std::vector<std::byte> gap(piece.offset - end);
      scratch.read(end, gap);
      const bool first = end == kSuperblockBytes;
      if (first || !all_zero(gap)) {
        layout.table.push_back({ExtentKind::metadata, crc32c(gap), end, gap.size()});
        layout.metadata.push_back({end, std::move(gap)});
      } else if (!layout.table.empty() && layout.table.back().offset + layout.table.back().length == end) {
        layout.table.back().length += gap.size();  // the index
      }
    }
    if (piece.is_index) layout.table.push_back({ExtentKind::index, 0, piece.offset, piece.length});
    end = piece.offset + piece.length;
  }
  for (const Extent& extent : layout.table) {
    if (extent.kind == ExtentKind::index) layout.index_capacity_bytes = extent.length;
  }
}

}  // namespace

LayoutBuilder::LayoutBuilder() : meta_block_bytes_(kFirstMetaBlockBytes), scratch_(kFirstMetaBlockBytes) {}

std::uint64_t LayoutBuilder::add(const RegionSpec& spec) {
  if (auto problem = check_region_spec(spec)) throw Error(*std::move(problem));
  if (groups_.contains(spec.name)) {
    throw Error(
        ErrorCode::invalid_argument,
        kedge::compose("region name '{0}' is also a group: another region's name starts with '{0}/'; rename one",
                       spec.name));
  }
  if (!names_.insert(spec.name).second) {
    throw Error(ErrorCode::invalid_argument,
                kedge::compose("region '{}' is saved twice; save each region once", spec.name));
  }
  metadata_estimate_bytes_ += kMetadataOfRegionBytes + 2 * spec.name.size() + kMetadataOfMembers * spec.members.size();
  add_groups_of(spec.name);
  grow_metadata_blocks();
  const std::uint64_t offset = scratch_.create_dataset(spec.name, {spec.dtype, spec.members}, spec.shape);
  regions_.push_back({spec, offset, region_size_bytes(spec), 0});
  return offset;
}

void LayoutBuilder::add_groups_of(const std::string& name) {
  for (std::size_t slash = name.find('/'); slash != std::string::npos; slash = name.find('/', slash + 1)) {
    const std::string group = name.substr(0, slash);
    if (groups_.contains(group)) continue;
    if (names_.contains(group)) {
      throw Error(
          ErrorCode::invalid_argument,
          kedge::compose("region name '{}' needs '{}' as a group, which is already a region; rename one", name, group));
    }
    scratch_.create_group(group);
    groups_.insert(group);
    metadata_estimate_bytes_ += kMetadataOfGroupBytes + 2 * group.size();
  }
}

// Keeps small containers small, and the number of metadata extents logarithmic in the number of regions.
void LayoutBuilder::grow_metadata_blocks() {
  bool grown = false;
  for (; metadata_estimate_bytes_ > 4 * meta_block_bytes_; grown = true) meta_block_bytes_ *= 4;
  if (grown) scratch_.reopen(meta_block_bytes_);
}

std::shared_ptr<const Layout> LayoutBuilder::finish() {
  auto layout = std::make_shared<Layout>();
  const std::uint64_t room = index_capacity(regions_, meta_block_bytes_);
  if (!groups_.contains(std::string(kIndexGroup))) scratch_.create_group(std::string(kIndexGroup));
  layout->index_offset = scratch_.create_dataset(std::string(kIndexDataset), {DataType::opaque}, Shape{room});
  layout->file_size = scratch_.close();

  std::vector<Piece> pieces = pieces_of(regions_);
  pieces.push_back({layout->index_offset, room, true});
  divide_into_extents(*layout, scratch_, std::move(pieces));
  static_cast<RegionMap&>(*layout) = make_region_map(std::move(regions_), layout->table, layout->file_size, "");
  layout->index_head = encode_index_head(*layout);
  if (layout->index_size() > room || layout->index_size() > kIndexBytesMax) {
    throw Error(ErrorCode::invalid_argument,
                kedge::compose("the index of {} regions takes {} bytes, the maximum is {}; use fewer regions",
                               layout->regions.size(), layout->index_size(), std::min(room, kIndexBytesMax)));
  }
  if (layout->table.size() > kTableEntriesMax) {
    throw Error(ErrorCode::invalid_argument,
                kedge::compose("HDF5 spread its metadata over {} extents, the maximum is {}; use fewer groups",
                               layout->table.size(), kTableEntriesMax));
  }
  return layout;
}

}  // namespace kedge::format
