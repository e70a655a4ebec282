// Finds the commit of the stores' containers, and assigns its ranks to processes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <vector>

namespace kedge::drain {

/// A sealed container, described by its header.
struct StoredContainer {
  std::uint64_t generation = 0;
  std::uint32_t logical_rank = 0;
  std::uint32_t world_size = 0;
  std::uint64_t incarnation = 0;  ///< the start that made it
  bool is_output = false;         ///< CommitHead::is_output
};

/// A container and a process (or node) whose store has it.
struct SeenContainer {
  int process = 0;
  StoredContainer container;
};

/// Commits on the prefix, for comparison with stores.
struct PrefixState {
  std::uint64_t generation = 0;     ///< of the newest checkpoint; 0 if there is none
  std::set<std::uint64_t> outputs;  ///< generations
  std::uint32_t world_size = 0;     ///< of the newest checkpoint
};

/// Pure. Containers of checkpoints newer than the prefix's, and of outputs that it lacks.
[[nodiscard]] std::vector<SeenContainer> find_missing(const PrefixState& prefix, std::span<const SeenContainer> seen);

/// A commit of which containers were seen, and the process for each of its ranks.
struct Layout {
  std::uint64_t generation = 0;  ///< of the newest complete commit, else of the newest; 0 if there is none
  std::uint32_t world_size = 0;
  std::size_t present = 0;  ///< number of ranks whose container exists
  std::vector<int> hosts;   ///< the process of each rank
};

/// Pure. Assigns each rank to a process that has its newest container of a job of this size, which avoids moves; ties,
/// and ranks without a container, go to the process with the fewest ranks. The order of `seen` does not matter.
[[nodiscard]] Layout place_ranks(std::span<const SeenContainer> seen, int processes);

/// One flushing start of the run. Only as many ranks as saved commits can flush them.
struct FlushPass {
  Layout layout;                        ///< of everything missing from this number of ranks
  std::uint64_t newest_checkpoint = 0;  ///< generation of the newest of which a container was seen; 0 if there is none
  std::set<std::uint64_t> outputs;      ///< generations

  [[nodiscard]] bool with_checkpoint() const noexcept { return newest_checkpoint != 0; }
};

/// Pure. One pass for each number of ranks that made something that the prefix lacks: by the newest checkpoint, then
/// those that only have outputs, by the newest of these.
[[nodiscard]] std::vector<FlushPass> plan_flush_passes(std::span<const SeenContainer> missing, int processes);

/// Pure. The container with the highest generation; all 0 if there is none.
[[nodiscard]] StoredContainer newest_of(std::span<const SeenContainer> seen);

}  // namespace kedge::drain
