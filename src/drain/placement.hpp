// Which process works for which rank, where there are more or fewer of them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace kedge::drain {

/// A process that sees the newest container of a rank in a store.
struct Sighting {
  int process = 0;
  std::uint32_t logical_rank = 0;
};

/// Pure. The process of each rank: one that sees its container, so that nothing has to be moved; of several, and for a
/// rank whose container none sees, the one with the fewest ranks so far. The same for the same sightings in any order.
[[nodiscard]] std::vector<int> place_ranks(std::uint32_t world_size, int processes, std::span<const Sighting> seen);

}  // namespace kedge::drain
