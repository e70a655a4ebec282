// Words in which tests tell histories of a simulated job: commit these tags, start again, see what is there.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "format/superblock.hpp"
#include "harness/simulated_job.hpp"

namespace kedge::faults {

/// Commits one checkpoint whose bytes tell rank and step. COLLECTIVE.
void commit_step(Engine& engine, int rank, const Tag& tag, int step);

/// COLLECTIVE. Rank 0 does it, between calls of all.
template <class Step>
void once(Engine& engine, int rank, Step&& step) {
  (void)engine.need_checkpoint();
  if (rank == 0) step();
  (void)engine.need_checkpoint();
}

/// The step that the open checkpoint holds; fails the test if a byte is another rank's or step's. Local.
int load_step(Engine& engine, int rank);

/// Opens a commit and finds in load that it is damaged, as close tells on all ranks. COLLECTIVE.
void find_damaged(Engine& engine, int rank, const Selection& selection, const Tag& tag);
/// Finds in load that the open commit is damaged, as close tells on all ranks. COLLECTIVE.
void load_damaged(Engine& engine, int rank);

/// What one start found; the same on all ranks, else the test fails.
struct Opened {
  std::optional<Tag> tag;
  int step = -1;
  CheckpointInfo info;
  Level level = Level::none;       ///< of the tag, once it is open
  std::optional<Failure> failure;  ///< thrown by the constructor or a collective call, on all ranks
};

using Steps = std::vector<std::pair<Tag, int>>;

/// One start that opens and loads, then commits `then`, and ends without finalize.
Opened reopen(SimulatedJob& job, const Selection& selection = latest, Newer newer = Newer::keep,
              const Steps& then = {});

/// One start that opens nothing and commits `steps`.
void commit_steps(SimulatedJob& job, const Steps& steps);

/// Two timelines with one tag and one generation number: after "base", step 1, a start makes "next", step 20, and from
/// the same state another start makes "next", step 30. The disk is left in the second; two commits are kept.
struct TwoTimelines {
  TwoTimelines(int ranks, const std::function<void(SimulatedJob&)>& configure);
  SimulatedJob job;
  FaultyDisk::Snapshot before, first, second;
};

/// All ranks returned; else the test fails with what they threw.
void expect_all_returned(const std::vector<testing::RankOutcome>& outcomes);
/// All ranks threw `code`; the lowest rank's failure.
Failure expect_all_failed(const std::vector<testing::RankOutcome>& outcomes, ErrorCode code);

/// The superblocks of sealed containers of a logical rank, by path.
std::vector<std::pair<std::string, format::Superblock>> superblocks(const FaultyDisk& disk, int rank);
/// The container of a rank that holds the newest commit of this tag; fails the test if there is none.
std::string container_of(const FaultyDisk& disk, int rank, const Tag& tag);
format::Superblock superblock_of(const FaultyDisk& disk, int rank, const Tag& tag);

/// Whether a text has all these parts.
[[nodiscard]] bool says(const std::string& text, const std::vector<std::string>& parts);

}  // namespace kedge::faults
