// Whether memory is what a saved region is loaded into.
#pragma once

#include <optional>

#include "format/region_map.hpp"
#include "kedge/error.hpp"
#include "kedge/types.hpp"

namespace kedge::engine {

/// Nothing if `wanted` is what the region needs, and `placement`, if it is stated, the one that was saved. Else why
/// not: mismatch or invalid_argument.
[[nodiscard]] std::optional<Failure> check_load_target(const Tag& tag, const format::StoredRegion& saved,
                                                       const MutableRegion& wanted, const Placement& placement);

}  // namespace kedge::engine
