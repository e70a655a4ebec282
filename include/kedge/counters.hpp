// Counters of an engine.
#pragma once

#include <cstdint>

namespace kedge {

/// Counters of an engine since it was created, as this rank knows them now. Bytes are those of this rank's own
/// containers; the counts are the same on every rank when nothing is pending. Times are seconds: `blocked` is how long
/// the application waited in the calls from create to commit, not counting the time save waits for GPU work that was
/// already submitted; the other two are how long after its commit a checkpoint reached the level, if it was due then.
struct Counters {
  std::uint64_t commits = 0;  ///< checkpoints that were committed
  std::uint64_t commits_failed =
      0;  ///< checkpoints that failed: in create or commit, or as snapshots that could not be sealed
  std::uint64_t protections = 0;         ///< commits that became protected
  std::uint64_t protections_failed = 0;  ///< attempts that failed
  std::uint64_t flushes = 0;             ///< commits that became persistent
  std::uint64_t flushes_failed = 0;      ///< commits of which the flush failed, after the last retry
  std::uint64_t flush_retries = 0;       ///< flushes that were tried again (persistent.retries)
  std::uint64_t retired = 0;             ///< commits that left the node-local stores
  std::uint64_t opens = 0;               ///< checkpoints that were opened
  std::uint64_t pending = 0;             ///< commits under way in the background now
  std::uint64_t saved_bytes = 0;         ///< committed
  std::uint64_t protected_bytes = 0;     ///< of commits that became protected
  std::uint64_t flushed_bytes = 0;       ///< of commits that became persistent
  std::uint64_t fetched_bytes = 0;       ///< read back from the prefix by open
  double blocked_s = 0;                  ///< by all commits together
  double blocked_last_s = 0;             ///< by the last commit
  double protected_last_s = 0;           ///< until the last one that became protected was
  double protected_max_s = 0;            ///< the longest of these
  double persistent_last_s = 0;          ///< until the last one that became persistent was
  double persistent_max_s = 0;           ///< the longest of these
};

}  // namespace kedge
