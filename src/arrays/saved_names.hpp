// How the ranks of a commit saved what has a name: asked before a load of a program that does not know it.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "arrays/wants.hpp"
#include "comm/group.hpp"
#include "format/region_spec.hpp"

namespace kedge::arrays {

/// A region that this process can read.
struct SavedRegion {
  format::RegionSpec spec;
  std::span<const std::uint32_t> checksums;  ///< as the container has them
  LogicalRank logical_rank;                  ///< that saved it
};

struct NameToFind {
  std::string name;
  std::optional<std::uint32_t> of = {};  ///< as this logical rank alone saved it

  [[nodiscard]] auto operator<=>(const NameToFind&) const = default;
};

/// Equal on all processes that ask.
struct SavedName {
  LookUp look_up = LookUp::of_rank;  ///< shard, replicated or of_rank
  ArrayType type;                    ///< of one of its regions; a shard's is that of the global array
  std::uint32_t regions = 0;         ///< 0: nobody saved it
  /// Two ranks, the lower one first, that saved it with different types, placements or bytes; nothing if none did.
  std::optional<std::pair<LogicalRank, LogicalRank>> unlike;
};

/// COLLECTIVE. For each of `names`, which may differ between processes, in their order. `mine` are regions that this
/// process can read, each known to one process. Bytes are compared by their checksums. Costs an all-reduce and three
/// sparse exchanges, of what has these names alone.
[[nodiscard]] std::vector<SavedName> find_saved_names(const comm::Group& group, std::span<const NameToFind> names,
                                                      std::span<const SavedRegion> mine);

}  // namespace kedge::arrays
