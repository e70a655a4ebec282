// Counters of an engine.
#pragma once

#include <cstdint>

namespace kedge {

/// What an engine has done since it was created, as this rank knows it. Bytes are of this rank's own containers; counts
/// are equal on all ranks when nothing is pending. Times are in seconds: `blocked` is the application's waiting time in
/// create to commit, without the time that save waits for GPU work already submitted; the others are times from a
/// commit until it reached the level, for commits that were due there.
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
  std::uint64_t pending = 0;             ///< commits now pending in the background
  std::uint64_t saved_bytes = 0;         ///< committed
  std::uint64_t protected_bytes = 0;     ///< of commits that became protected
  std::uint64_t flushed_bytes = 0;       ///< of commits that became persistent
  std::uint64_t fetched_bytes = 0;       ///< fetched from the prefix by open
  double blocked_s = 0;                  ///< by all commits together
  double blocked_last_s = 0;             ///< by the last commit
  double protected_last_s = 0;           ///< of the last commit that became protected
  double protected_max_s = 0;            ///< the longest so far
  double persistent_last_s = 0;          ///< of the last commit that became persistent
  double persistent_max_s = 0;           ///< the longest so far
};

}  // namespace kedge
