#include "format/manifest_layout.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <tuple>
#include <unordered_set>

#include "base/attempt.hpp"
#include "base/text.hpp"
#include "checksum/crc32c.hpp"
#include "format/attributes.hpp"
#include "format/cover.hpp"
#include "format/fill_value.hpp"
#include "format/hdf5_structure.hpp"
#include "format/manifest.hpp"
#include "format/manifest_rows.hpp"
#include "format/region_spec.hpp"

namespace kedge::format {
namespace {

constexpr std::uint64_t kMetaBlockBytes = 2048;  // HDF5's default; a manifest always has few extents
constexpr std::uint64_t kAttributesCapacityMin = 512;

void require_region_spec(const RegionSpec& spec) {
  if (auto problem = check_region_spec(spec)) throw Error(*std::move(problem));
}

bool is_scalar(const Elements& elements, const Shape& shape) {
  return shape.dimensions() == (elements.members.empty() ? 0 : 1);
}

std::vector<std::byte> fill_of(const Elements& elements, const Shape& shape) {
  return elements.members.empty() ? fill_value(elements.dtype)
                                  : fill_value(elements.members, shape[shape.dimensions() - 1]);
}

/// Visits every group that contains the name, outermost first.
template <class Visit>
void for_each_group(const std::string& name, Visit&& visit) {
  for (auto slash = name.find('/'); slash != std::string::npos; slash = name.find('/', slash + 1)) {
    visit(name.substr(0, slash));
  }
}

// Makes the file with HDF5, which is not needed afterwards.
class ManifestLayoutBuilder {
 public:
  explicit ManifestLayoutBuilder(std::span<const std::string> files);
  void add(const Attributes& attributes);
  void add(const ManifestView& view);
  void add_rank_links();
  void add_rank_regions(std::vector<ManifestView::RankRegion> regions);
  [[nodiscard]] std::shared_ptr<const ManifestLayout> finish();

 private:
  void add_array(const ManifestView::Array& array);
  void add_replica(const ManifestView::Replica& replica);
  void add_whole(const std::string& path, const Elements& elements, const Shape& shape, const std::string& file,
                 const std::string& source);
  void add_name(const std::string& name);
  [[nodiscard]] const std::string& file_of(std::uint32_t rank, const std::string& name) const;
  void divide_into_extents();

  Hdf5Scratch scratch_{kMetaBlockBytes, Hdf5Versions::v1_10};
  std::shared_ptr<ManifestLayout> layout_ = std::make_shared<ManifestLayout>();
  std::unordered_set<std::string> names_;
  std::unordered_set<std::string> groups_;
};

ManifestLayoutBuilder::ManifestLayoutBuilder(std::span<const std::string> files) {
  if (files.empty() || files.size() > std::numeric_limits<std::uint32_t>::max()) {
    refuse(ErrorCode::invalid_argument, kedge::compose("a manifest of {} containers is impossible", files.size()));
  }
  for (const std::string& file : files) {
    if (const auto problem = check_shard_file(file)) refuse(ErrorCode::invalid_argument, *problem);
  }
  layout_->shard_files.assign(files.begin(), files.end());
  scratch_.create_group(".kedge");
  layout_->table_offset = scratch_.create_shard_table(".kedge/shards", files.size());
  scratch_.create_group("ranks");
}

void ManifestLayoutBuilder::add(const Attributes& attributes) {
  if (auto problem = check_attributes(attributes)) throw Error(*std::move(problem));
  if (attributes.empty()) return;
  layout_->attributes_capacity_bytes =
      std::max<std::uint64_t>(std::bit_ceil(encode_attributes(attributes).size()), kAttributesCapacityMin);
  layout_->attributes_offset = scratch_.create_text(".kedge/attributes", layout_->attributes_capacity_bytes);
  layout_->shown_attributes = select_shown_attributes(attributes);
  for (std::size_t i = 0; i < layout_->shown_attributes.size(); ++i) {
    const Hdf5Attribute& attribute = layout_->shown_attributes[i];
    scratch_.create_attribute(attribute, make_marked_value(attribute, i));
  }
}

void ManifestLayoutBuilder::add_rank_links() {
  for (std::size_t rank = 0; rank < layout_->shard_files.size(); ++rank) {
    scratch_.create_external_link(kedge::compose("ranks/{}", rank), layout_->shard_files[rank], "/");
  }
}

void ManifestLayoutBuilder::add_rank_regions(std::vector<ManifestView::RankRegion> regions) {
  std::ranges::sort(regions, {},
                    [](const ManifestView::RankRegion& region) { return std::tie(region.rank, region.name); });
  for (std::size_t rank = 0; rank < layout_->shard_files.size(); ++rank) {
    scratch_.create_group(kedge::compose("ranks/{}", rank));
  }
  std::unordered_set<std::string> groups;
  for (const ManifestView::RankRegion& region : regions) {
    require_region_spec({region.name, region.dtype, region.shape, {}, false, region.members});
    const std::string& file = file_of(region.rank, region.name);
    const std::string within = kedge::compose("ranks/{}/", region.rank);
    for_each_group(region.name, [&](const std::string& group) {
      if (groups.insert(within + group).second) scratch_.create_group(within + group);
    });
    if (region.is_shared) scratch_.create_external_link(within + region.name, file, "/" + region.name);
    else add_whole(within + region.name, {region.dtype, region.members}, region.shape, file, "/" + region.name);
  }
}

// Shows the whole region of one file: by a link if it has no dimensions or elements, as HDF5 has no such virtual
// datasets.
void ManifestLayoutBuilder::add_whole(const std::string& path, const Elements& elements, const Shape& shape,
                                      const std::string& file, const std::string& source) {
  if (is_scalar(elements, shape) || !has_elements(shape)) {
    scratch_.create_external_link(path, file, source);
    return;
  }
  constexpr std::array<std::uint64_t, Shape::kMaxDimensions> kOrigin{};
  const Shape origin{std::span(kOrigin).first(shape.dimensions())};
  scratch_.create_virtual(path, elements, shape, source, {{file, origin, shape}}, fill_of(elements, shape));
}

// Sorts first: the file must not depend on the order in which ranks reported arrays and blocks.
void ManifestLayoutBuilder::add(const ManifestView& view) {
  layout_->has_view = true;
  std::vector<const ManifestView::Array*> arrays;
  for (const ManifestView::Array& array : view.arrays) arrays.push_back(&array);
  std::ranges::sort(arrays, {}, [](const ManifestView::Array* array) -> const std::string& { return array->name; });
  for (const ManifestView::Array* array : arrays) add_array(*array);
  std::vector<const ManifestView::Replica*> replicas;
  for (const ManifestView::Replica& replica : view.replicas) replicas.push_back(&replica);
  std::ranges::sort(replicas, {},
                    [](const ManifestView::Replica* replica) -> const std::string& { return replica->name; });
  for (const ManifestView::Replica* replica : replicas) add_replica(*replica);
  if (view.rank_regions) add_rank_regions(*view.rank_regions);
  else add_rank_links();
}

void ManifestLayoutBuilder::add_array(const ManifestView::Array& array) {
  RegionSpec spec{array.name, array.dtype, array.global_shape, {}, false, array.members};
  if (auto problem = check_region_spec(spec)) throw Error(*std::move(problem));
  add_name(array.name);
  std::vector<const SavedBlock*> blocks;
  for (const SavedBlock& block : array.blocks) {
    spec.shape = block.shape;
    spec.placement = Shard{array.global_shape, block.offset};
    if (auto problem = check_region_spec(spec)) throw Error(*std::move(problem));
    if (has_elements(block.shape)) blocks.push_back(&block);
  }
  std::ranges::sort(blocks, {}, [](const SavedBlock* block) { return block->rank; });
  // Virtual datasets need at least one dimension.
  if (is_scalar({array.dtype, array.members}, array.global_shape) && !blocks.empty()) {
    scratch_.create_external_link(array.name, file_of(blocks.front()->rank, array.name), "/" + array.name);
    return;
  }
  std::vector<VirtualPart> parts;
  parts.reserve(blocks.size());
  for (const SavedBlock* block : blocks)
    parts.push_back({file_of(block->rank, array.name), block->offset, block->shape});
  // Where holes are allowed, readers expect zeros.
  const Elements elements{array.dtype, array.members};
  const auto fill = array.holes_allowed ? std::vector<std::byte>{} : fill_of(elements, array.global_shape);
  scratch_.create_virtual(array.name, elements, array.global_shape, "/" + array.name, parts, fill);
}

void ManifestLayoutBuilder::add_replica(const ManifestView::Replica& replica) {
  require_region_spec({replica.name, replica.dtype, replica.shape, {}, false, replica.members});
  add_name(replica.name);
  add_whole(replica.name, {replica.dtype, replica.members}, replica.shape, file_of(replica.rank, replica.name),
            "/" + replica.name);
}

const std::string& ManifestLayoutBuilder::file_of(std::uint32_t rank, const std::string& name) const {
  if (rank < layout_->shard_files.size()) return layout_->shard_files[rank];
  refuse(ErrorCode::invalid_argument, kedge::compose("'{}' is saved by rank {}, but there are only {} ranks",
                                                     printable_name(name), rank, layout_->shard_files.size()));
}

// The names of one rank fit each other; those of different ranks may not.
void ManifestLayoutBuilder::add_name(const std::string& name) {
  if (groups_.contains(name)) {
    refuse(ErrorCode::invalid_argument,
           kedge::compose("'{0}' is saved by one rank, and a region below '{0}/' by another; rename one",
                          printable_name(name)));
  }
  if (!names_.insert(name).second) {
    refuse(ErrorCode::invalid_argument,
           kedge::compose("'{}' names two global arrays or replicated regions; rename one", printable_name(name)));
  }
  for_each_group(name, [&](const std::string& group) {
    if (groups_.contains(group)) return;
    if (names_.contains(group)) {
      refuse(ErrorCode::invalid_argument,
             kedge::compose("'{}' is saved by one rank, and '{}' below it by another; rename one",
                            printable_name(group), printable_name(name)));
    }
    scratch_.create_group(group);
    groups_.insert(group);
  });
}

std::shared_ptr<const ManifestLayout> ManifestLayoutBuilder::finish() {
  layout_->file.resize(scratch_.close());
  scratch_.read(kSuperblockBytes, std::span(layout_->file).subspan(kSuperblockBytes));
  locate_values(layout_->shown_attributes, layout_->file);
  divide_into_extents();
  return layout_;
}

// Table and attributes are extents of their own; between them is HDF5 metadata.
void ManifestLayoutBuilder::divide_into_extents() {
  std::vector<Extent> pieces{
      {ExtentKind::shards, 0, layout_->table_offset, kShardRowBytes * layout_->shard_files.size()}};
  if (layout_->attributes_capacity_bytes != 0) {
    pieces.push_back({ExtentKind::attributes, 0, layout_->attributes_offset, layout_->attributes_capacity_bytes});
  }
  std::ranges::sort(pieces, {}, &Extent::offset);
  pieces.push_back({ExtentKind::metadata, 0, layout_->file.size(), 0});
  std::uint64_t end = kSuperblockBytes;
  for (const Extent& piece : pieces) {
    if (piece.offset < end)
      throw Error(ErrorCode::io,
                  "HDF5 placed the shard table and the attributes in the same bytes; please report this");
    if (piece.offset > end) {
      const auto bytes = std::span(layout_->file).subspan(end, piece.offset - end);
      layout_->extents.push_back({ExtentKind::metadata, crc32c(bytes), end, bytes.size()});
    }
    if (piece.length != 0) layout_->extents.push_back(piece);
    end = piece.offset + piece.length;
  }
}

}  // namespace

std::shared_ptr<const ManifestLayout> make_manifest_layout(const ManifestView* view, std::span<const std::string> files,
                                                           const Attributes& attributes) {
  ManifestLayoutBuilder builder(files);
  builder.add(attributes);
  if (view != nullptr) builder.add(*view);
  else builder.add_rank_links();
  return builder.finish();
}

}  // namespace kedge::format
