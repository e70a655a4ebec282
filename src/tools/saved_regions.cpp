#include "tools/saved_regions.hpp"

#include <algorithm>
#include <variant>

#include "base/json.hpp"
#include "base/text.hpp"
#include "format/on_disk.hpp"
#include "tools/text_format.hpp"

namespace kedge::tools {
namespace {

std::string kind_of(const format::RegionSpec& spec) {
  if (spec.is_routed) return format::is_empty_directory(spec) ? "routed, empty directory" : "routed file";
  return std::holds_alternative<Replicated>(spec.placement) ? "replicated" : "own";
}

Json indices_json(const arrays::Point& point, std::size_t dimensions) {
  Json json = Json::array();
  for (std::size_t axis = 0; axis < dimensions; ++axis) json.push_back(point[axis]);
  return json;
}

}  // namespace

void SavedRegions::add(std::uint32_t rank, const format::StoredRegion& region) {
  const format::RegionSpec& spec = region.spec;
  if (spec.name == format::kAttributesName) return;  // Kedge's own, shown as attributes
  if (const auto* shard = std::get_if<Shard>(&spec.placement)) {
    Array& array = arrays_[{spec.name, spec.dtype, to_string(shard->global_shape)}];
    array.members = spec.members;
    array.global_shape = shard->global_shape;
    array.bytes += region.size_bytes;
    if (region.size_bytes > 0) array.blocks.push_back({rank, arrays::box_at(shard->offset, spec.shape)});
    return;
  }
  Other& other = others_[{spec.name, spec.dtype, kind_of(spec)}];
  if (other.ranks > 0 && other.shape != spec.shape) other.same_shape = false;
  other.shape = spec.shape;
  other.members = spec.members;
  other.bytes += region.size_bytes;
  ++other.ranks;
}

std::string SavedRegions::division_cell(const Array& array) const {
  const Division division = describe_division(array.global_shape, array.blocks, is_complete_);
  const std::size_t dimensions = array.global_shape.dimensions();
  std::string text = division.words;
  if (division.overlap) {
    const SavedBlock& one = array.blocks[division.overlap->first];
    const SavedBlock& other = array.blocks[division.overlap->second];
    text += compose("; OVERLAP: ranks {} and {} both saved {}", one.rank, other.rank,
                    indices_text(arrays::intersection(one.box, other.box).begin, dimensions));
  }
  if (division.missing == 0 && !division.hole) return text;
  text += "; HOLE:";
  if (division.missing != 0) text += compose(" {} elements are in no block", division.missing);
  if (division.hole) {
    text += compose("{} {}", division.missing == 0 ? " no block has" : ", the first at",
                    indices_text(*division.hole, dimensions));
  }
  return text;
}

std::string SavedRegions::arrays_text() const {
  if (arrays_.empty()) return {};
  Table table("lllrrl");
  table.add({"global array", "dtype", "shape", "blocks", "bytes", "division"});
  for (const auto& [key, array] : arrays_) {
    table.add({printable(std::get<0>(key)), dtype_text(std::get<1>(key), array.members), to_string(array.global_shape),
               compose("{}", array.blocks.size()), human_bytes(array.bytes), division_cell(array)});
  }
  return "\n" + table.text();
}

std::string SavedRegions::regions_text() const {
  if (others_.empty()) return {};
  Table table("lllrrl");
  table.add({"region", "dtype", "shape", "ranks", "bytes", "placement"});
  for (const auto& [key, region] : others_) {
    const auto& [name, dtype, kind] = key;
    table.add({printable(name), dtype_text(dtype, region.members),
               region.same_shape ? to_string(region.shape) : "differs", compose("{}", region.ranks),
               human_bytes(region.bytes), kind == "own" ? "rank's own" : kind});
  }
  return "\n" + table.text();
}

std::string SavedRegions::blocks_text() const {
  Table table("lrll");
  table.add({"global array", "rank", "block at", "shape"});
  for (const auto& [key, array] : arrays_) {
    for (const SavedBlock& block : array.blocks) {
      table.add({printable(std::get<0>(key)), compose("{}", block.rank),
                 indices_text(block.box.begin, block.box.dimensions), to_string(arrays::shape_of(block.box))});
    }
  }
  return arrays_.empty() ? std::string() : "\n" + table.text();
}

Json SavedRegions::arrays_json(bool with_blocks) const {
  Json all = Json::array();
  for (const auto& [key, array] : arrays_) {
    const Division division = describe_division(array.global_shape, array.blocks, is_complete_);
    Json json = {{"name", std::get<0>(key)},
                 {"dtype", to_string(std::get<1>(key))},
                 {"global_shape", shape_json(array.global_shape)},
                 {"blocks", array.blocks.size()},
                 {"bytes", array.bytes},
                 {"division", division.words},
                 {"overlap", nullptr},
                 {"hole", nullptr}};
    if (!array.members.empty()) json["members"] = array.members;
    if (division.overlap) {
      json["overlap"] = {array.blocks[division.overlap->first].rank, array.blocks[division.overlap->second].rank};
    }
    if (division.hole) json["hole"] = indices_json(*division.hole, array.global_shape.dimensions());
    for (const SavedBlock& block : with_blocks ? array.blocks : std::vector<SavedBlock>()) {
      json["block_list"].push_back({{"rank", block.rank},
                                    {"offset", indices_json(block.box.begin, block.box.dimensions)},
                                    {"shape", shape_json(arrays::shape_of(block.box))}});
    }
    all.push_back(std::move(json));
  }
  return all;
}

Json SavedRegions::regions_json() const {
  Json all = Json::array();
  for (const auto& [key, region] : others_) {
    const auto& [name, dtype, kind] = key;
    all.push_back({{"name", name},
                   {"dtype", to_string(dtype)},
                   {"shape", region.same_shape ? shape_json(region.shape) : Json()},
                   {"ranks", region.ranks},
                   {"bytes", region.bytes},
                   {"placement", kind == "replicated" ? "replicated" : "own"},
                   {"routed", kind.starts_with("routed")}});
    if (!region.members.empty()) all.back()["members"] = region.members;
  }
  return all;
}

}  // namespace kedge::tools
