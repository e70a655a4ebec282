// What a rank asks of a checkpoint, whichever ranks saved it.
#pragma once

#include <optional>
#include <string>

#include "kedge/types.hpp"

namespace kedge {

/// Part of a checkpoint that Engine::load_all brings into memory of this rank. With a Shard as placement, any block of
/// that global array, however it was divided when it was saved; blocks of several ranks may overlap, so that ghost
/// layers can be asked for. With Replicated, a region that all ranks saved alike. Without a placement, `of` says which
/// rank's own region; without `of`, it is the only region of that name, whichever rank saved it.
struct Want {
  std::string name;                    ///< Of the region.
  MutableRegion region;                ///< Host memory of the caller, with the saved type.
  Placement placement = {};            ///< As for save.
  std::optional<LogicalRank> of = {};  ///< The rank that saved it.
};

}  // namespace kedge
