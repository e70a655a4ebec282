// Which commit the stores' containers are of, and which process works for which rank of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <vector>

namespace kedge::drain {

/// A container that is sealed, by its header.
struct StoredContainer {
  std::uint64_t generation = 0;
  std::uint32_t logical_rank = 0;
  std::uint32_t world_size = 0;
  std::uint64_t incarnation = 0;  ///< the start that made it
  bool is_output = false;         ///< CommitHead::is_output
};

/// A container, and a process (or place) that sees it in a store.
struct SeenContainer {
  int process = 0;
  StoredContainer container;
};

/// Commits on the prefix, as far as stores may have more.
struct PrefixState {
  std::uint64_t generation = 0;     ///< generation of the newest checkpoint; 0: none
  std::set<std::uint64_t> outputs;  ///< generations
};

/// Pure. Containers of the checkpoints that are newer than the prefix's, and of outputs that it lacks.
[[nodiscard]] std::vector<SeenContainer> find_missing(const PrefixState& prefix, std::span<const SeenContainer> seen);

/// The commit that all sightings describe, and who works for which rank.
struct Layout {
  std::uint64_t generation = 0;  ///< the newest commit of which all containers are there, else the newest; 0: none
  std::uint32_t world_size = 0;
  std::size_t present = 0;  ///< ranks of which its container is there
  std::vector<int> hosts;   ///< the process of each rank
};

/// Pure. A rank works where the newest container that it has of so large a job is, so that nothing has to be moved; of
/// several such processes, and for a rank that has none, the one with the fewest ranks so far. The same for the same
/// sightings in any order.
[[nodiscard]] Layout place_ranks(std::span<const SeenContainer> seen, int processes);

/// One start of the run that flushes: ranks of one number, as only they can take hold of what so many saved.
struct FlushPass {
  bool with_checkpoint = false;     ///< the newest checkpoint has this number of ranks; else outputs alone
  Layout layout;                    ///< for all that is missing of this number of ranks
  std::set<std::uint64_t> outputs;  ///< generations
};

/// Pure. Shifts for what is missing on the prefix: first the shift with the newest checkpoint that is whole, if there
/// are any, then one for each other number of ranks that left outputs, the newest first. An older checkpoint of theirs
/// is superseded.
[[nodiscard]] std::vector<FlushPass> plan_flush_passes(std::span<const SeenContainer> missing, int processes);

/// Pure. The container with the greatest generation; all 0 if there is none.
[[nodiscard]] StoredContainer newest_of(std::span<const SeenContainer> seen);

}  // namespace kedge::drain
