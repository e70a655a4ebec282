// Whether two checkpoints of a rank have the same structure, as far as others see it. Pure.
#pragma once

#include <cstdint>
#include <span>

#include "format/region_map.hpp"

namespace kedge::arrays {

/// The regions of a rank that a manifest's view shows as more than a link to the container.
enum class ViewedRegions : std::uint8_t { shared, all };

/// Hash of this rank's part of what the manifest's view depends on: the viewed regions, in their order, without their
/// data.
[[nodiscard]] std::uint64_t structure_hash(std::span<const format::StoredRegion> regions, ViewedRegions viewed);

}  // namespace kedge::arrays
