#include "arrays/structure_hash.hpp"

#include <variant>

#include "base/hash.hpp"
#include "format/region_spec.hpp"

namespace kedge::arrays {
namespace {

std::uint64_t mixed(std::uint64_t hash, std::uint64_t value) {
  return (hash ^ value) * 0x9e3779b97f4a7c15U + (hash >> 29U);
}

std::uint64_t hash_of_shape(const Shape& shape) {
  std::uint64_t hash = shape.dimensions();
  for (const std::uint64_t extent : shape.extents()) hash = mixed(hash, extent);
  return hash;
}

}  // namespace

std::uint64_t structure_hash(std::span<const format::StoredRegion> regions, ViewedRegions viewed) {
  std::uint64_t hash = regions.size();
  for (const auto& [spec, offset, bytes, first_checksum] : regions) {
    const auto* shard = std::get_if<Shard>(&spec.placement);
    const bool is_own = std::holds_alternative<std::monostate>(spec.placement);
    if (is_own && (viewed == ViewedRegions::shared || format::is_attributes_region(spec))) continue;
    hash = mixed(hash, fnv1a(spec.name));
    hash = mixed(hash, static_cast<std::uint64_t>(spec.dtype));
    hash = mixed(hash, fnv1a(spec.members));
    hash = mixed(hash, hash_of_shape(spec.shape));
    hash = mixed(hash, spec.placement.index());
    if (shard == nullptr) continue;
    hash = mixed(hash, hash_of_shape(shard->global_shape));
    hash = mixed(hash, hash_of_shape(shard->offset));
    hash = mixed(hash, shard->holes_allowed ? 1 : 0);  // what stands where a container is missing depends on it
  }
  return hash;
}

}  // namespace kedge::arrays
