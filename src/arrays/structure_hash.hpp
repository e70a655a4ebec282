// Whether two checkpoints of a rank have the same structure, as far as others see it. Pure.
#pragma once

#include <cstdint>
#include <span>

#include "format/region_map.hpp"

namespace kedge::arrays {

/// Of everything of this rank's regions that the manifest's view depends on: the shared ones, in their order, without
/// their data.
[[nodiscard]] std::uint64_t structure_hash(std::span<const format::PlacedRegion> regions);

}  // namespace kedge::arrays
