// Replicated regions have the same bytes on every rank that saves them. Each commit compares them by their checksums.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "comm/group.hpp"
#include "format/region_map.hpp"
#include "kedge/error.hpp"

namespace kedge::arrays {

/// The replicated regions of a rank's container.
struct Replicas {
  std::span<const format::StoredRegion> regions;  ///< all regions of the container, also other ones
  /// The checksums of the region at this position.
  std::function<std::span<const std::uint32_t>(std::size_t position)> checksums;
};

/// Returns the same number on two ranks that save the same replicated regions with the same bytes, in any order; 0 if
/// there are none.
[[nodiscard]] std::uint64_t digest_of(const Replicas& replicas);

/// COLLECTIVE, to be voted on. Returns `mismatch` naming a region of this rank, and two ranks on which its bytes
/// differ; nothing if each is equal on all ranks that save it. Also returns failures to compare, unless communication
/// ended. Costs an all-reduce and three sparse exchanges: to be called where digests differ.
[[nodiscard]] std::optional<Failure> find_difference(const comm::Group& group, const Replicas& replicas);

}  // namespace kedge::arrays
