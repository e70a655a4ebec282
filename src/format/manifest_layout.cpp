#include "format/manifest_layout.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <unordered_set>

#include "base/checksum.hpp"
#include "base/text.hpp"
#include "format/attributes.hpp"
#include "format/hdf5_structure.hpp"
#include "format/manifest.hpp"
#include "format/manifest_rows.hpp"
#include "format/region_spec.hpp"
#include "format/utf8.hpp"

namespace kedge::format {
namespace {

constexpr std::uint64_t kMetaBlockBytes = 2048;  // HDF5's own default: a manifest has few extents whatever it is
constexpr std::uint64_t kAttributesRoomMin = 512;

[[noreturn]] void refuse_argument(std::string message) { throw Error(ErrorCode::invalid_argument, std::move(message)); }

bool has_elements(const Shape& shape) {
  return std::ranges::none_of(shape.extents(), [](std::uint64_t extent) { return extent == 0; });
}

// Makes the file by HDF5 and then forgets HDF5.
class ManifestBuilder {
 public:
  ManifestBuilder(std::span<const std::string> files, std::size_t attributes_bytes);
  void add(const View& view);
  [[nodiscard]] std::shared_ptr<const ManifestLayout> finish();

 private:
  void add_array(const View::Array& array);
  void add_replica(const View::Replica& replica);
  void add_name(const std::string& name);
  [[nodiscard]] const std::string& file_of(std::uint32_t rank, const std::string& name) const;
  void divide();

  Hdf5Scratch scratch_{kMetaBlockBytes, Hdf5Versions::v1_10};
  std::shared_ptr<ManifestLayout> layout_ = std::make_shared<ManifestLayout>();
  std::unordered_set<std::string> names_;
  std::unordered_set<std::string> groups_;
};

ManifestBuilder::ManifestBuilder(std::span<const std::string> files, std::size_t attributes_bytes) {
  if (files.empty() || files.size() > std::numeric_limits<std::uint32_t>::max()) {
    refuse_argument(kedge::compose("a manifest of {} containers is impossible", files.size()));
  }
  if (attributes_bytes > kAttributesBytesMax) {
    refuse_argument(
        kedge::compose("the attributes take {} bytes, the maximum is {}", attributes_bytes, kAttributesBytesMax));
  }
  for (const std::string& file : files) {
    if (const auto problem = shard_file_problem(file)) refuse_argument(*problem);
  }
  layout_->shard_files.assign(files.begin(), files.end());
  scratch_.create_group(".kedge");
  layout_->table_offset = scratch_.create_shard_table(".kedge/shards", files.size());
  if (attributes_bytes != 0) {
    layout_->attributes_room = std::max<std::uint64_t>(std::bit_ceil(attributes_bytes), kAttributesRoomMin);
    layout_->attributes_offset = scratch_.create_text(".kedge/attributes", layout_->attributes_room);
  }
  scratch_.create_group("ranks");
  for (std::size_t rank = 0; rank < files.size(); ++rank) {
    scratch_.create_external_link(kedge::compose("ranks/{}", rank), files[rank], "/");
  }
}

// The file must not depend on the order in which somebody heard of arrays and blocks.
void ManifestBuilder::add(const View& view) {
  layout_->has_view = true;
  std::vector<const View::Array*> arrays;
  for (const View::Array& array : view.arrays) arrays.push_back(&array);
  std::ranges::sort(arrays, {}, [](const View::Array* array) -> const std::string& { return array->name; });
  for (const View::Array* array : arrays) add_array(*array);
  std::vector<const View::Replica*> replicas;
  for (const View::Replica& replica : view.replicas) replicas.push_back(&replica);
  std::ranges::sort(replicas, {}, [](const View::Replica* replica) -> const std::string& { return replica->name; });
  for (const View::Replica* replica : replicas) add_replica(*replica);
}

void ManifestBuilder::add_array(const View::Array& array) {
  RegionSpec spec{array.name, array.dtype, array.global_shape, {}, false, array.members};
  if (auto problem = check(spec)) throw Error(*std::move(problem));
  add_name(array.name);
  std::vector<const Block*> blocks;
  for (const Block& block : array.blocks) {
    spec.shape = block.shape;
    spec.placement = Shard{array.global_shape, block.offset};
    if (auto problem = check(spec)) throw Error(*std::move(problem));
    if (has_elements(block.shape)) blocks.push_back(&block);
  }
  std::ranges::sort(blocks, {}, [](const Block* block) { return block->rank; });
  const bool scalar =
      array.global_shape.dimensions() == (array.members.empty() ? 0 : 1);  // virtual datasets are arrays
  if (scalar && !blocks.empty()) {
    scratch_.create_external_link(array.name, file_of(blocks.front()->rank, array.name), "/" + array.name);
    return;
  }
  std::vector<VirtualPart> parts;
  parts.reserve(blocks.size());
  for (const Block* block : blocks) parts.push_back({file_of(block->rank, array.name), block->offset, block->shape});
  scratch_.create_virtual(array.name, {array.dtype, array.members}, array.global_shape, "/" + array.name, parts);
}

void ManifestBuilder::add_replica(const View::Replica& replica) {
  if (auto problem = check(RegionSpec{replica.name, DataType::opaque, Shape{}, {}, false})) {
    throw Error(*std::move(problem));
  }
  add_name(replica.name);
  scratch_.create_external_link(replica.name, file_of(replica.rank, replica.name), "/" + replica.name);
}

const std::string& ManifestBuilder::file_of(std::uint32_t rank, const std::string& name) const {
  if (rank < layout_->shard_files.size()) return layout_->shard_files[rank];
  refuse_argument(kedge::compose("'{}' is saved by rank {}, but there are only {} ranks", shown(name), rank,
                                 layout_->shard_files.size()));
}

// Ranks save under names that fit each other; different ranks' names may not.
void ManifestBuilder::add_name(const std::string& name) {
  if (groups_.contains(name)) {
    refuse_argument(
        kedge::compose("'{0}' is saved by one rank, and a region below '{0}/' by another; rename one", shown(name)));
  }
  if (!names_.insert(name).second) {
    refuse_argument(kedge::compose("'{}' names two global arrays or replicated regions; rename one", shown(name)));
  }
  for (std::size_t slash = name.find('/'); slash != std::string::npos; slash = name.find('/', slash + 1)) {
    const std::string group = name.substr(0, slash);
    if (groups_.contains(group)) continue;
    if (names_.contains(group)) {
      refuse_argument(kedge::compose("'{}' is saved by one rank, and '{}' below it by another; rename one",
                                     shown(group), shown(name)));
    }
    scratch_.create_group(group);
    groups_.insert(group);
  }
}

std::shared_ptr<const ManifestLayout> ManifestBuilder::finish() {
  layout_->file.resize(scratch_.close());
  scratch_.read(kSuperblockBytes, std::span(layout_->file).subspan(kSuperblockBytes));
  divide();
  return layout_;
}

// Table and attributes are extents of their own, what lies between is HDF5's metadata.
void ManifestBuilder::divide() {
  std::vector<Extent> pieces{
      {ExtentKind::shards, 0, layout_->table_offset, kShardRowBytes * layout_->shard_files.size()}};
  if (layout_->attributes_room != 0) {
    pieces.push_back({ExtentKind::attributes, 0, layout_->attributes_offset, layout_->attributes_room});
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

std::shared_ptr<const ManifestLayout> make_manifest_layout(const View* view, std::span<const std::string> files,
                                                           std::size_t attributes_bytes) {
  ManifestBuilder builder(files, attributes_bytes);
  if (view != nullptr) builder.add(*view);
  return builder.finish();
}

std::size_t attributes_room(const ManifestLayout& layout) noexcept { return layout.attributes_room; }

}  // namespace kedge::format
