#include "drain/placement.hpp"

#include <algorithm>
#include <cstddef>

namespace kedge::drain {

std::vector<int> place_ranks(std::uint32_t world_size, int processes, std::span<const Sighting> seen) {
  std::vector<std::vector<int>> sees(world_size);
  for (const Sighting& one : seen) {
    if (one.logical_rank < world_size) sees[one.logical_rank].push_back(one.process);
  }
  std::vector<std::uint32_t> load(static_cast<std::size_t>(processes));
  std::vector<int> hosts(world_size);
  const auto place = [&](std::uint32_t rank, std::span<const int> candidates) {
    const auto lighter = [&](int a, int b) {
      const auto load_a = load[static_cast<std::size_t>(a)];
      const auto load_b = load[static_cast<std::size_t>(b)];
      return load_a != load_b ? load_a < load_b : a < b;
    };
    hosts[rank] = *std::ranges::min_element(candidates, lighter);
    ++load[static_cast<std::size_t>(hosts[rank])];
  };
  for (std::uint32_t rank = 0; rank < world_size; ++rank) {
    if (!sees[rank].empty()) place(rank, sees[rank]);
  }
  std::vector<int> all(static_cast<std::size_t>(processes));
  for (std::size_t process = 0; process < all.size(); ++process) all[process] = static_cast<int>(process);
  for (std::uint32_t rank = 0; rank < world_size; ++rank) {
    if (sees[rank].empty()) place(rank, all);
  }
  return hosts;
}

}  // namespace kedge::drain
