// One start of an application whose state is drawn from a seed, and what its ranks saw.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "harness/simulated_job.hpp"

namespace kedge::faults {

struct RandomStart {
  std::uint64_t seed = 0;  ///< of what is saved
  bool opens = true;
  bool restores = false;  ///< where it opens: by restore
  Selection selection = latest;
  Newer newer = Newer::keep;
  int first_step = 1;  ///< of those that are committed then, with tags "s<step>"
  int commits = 0;
  int opens_again = 0;  ///< after that, how often
  bool finalizes = false;
  /// Called before each of these opens, while no rank is in the engine.
  std::function<void()> between = [] {};
};

/// What one open gave.
struct Opening {
  std::optional<Tag> tag;
  Id128 commit_id;
  Level level = Level::none;
  int step = kNotLoaded;

  static constexpr int kNotLoaded = -1;  ///< nothing was opened, or a load failed
  bool operator==(const Opening&) const = default;
};

/// What one rank saw.
struct RankObservation {
  Opening first;
  std::vector<Opening> again;
  std::vector<Level> committed;  ///< levels right after each commit
  std::string reached;           ///< the call that was made last
  std::optional<Failure> failure;
};

struct Started {
  std::vector<RankObservation> ranks;
  bool any_died = false;
};

/// Fails the test if a rank loads wrong bytes, or throws what is no Error.
[[nodiscard]] Started carry_out(SimulatedJob& job, const RandomStart& start);

[[nodiscard]] Tag tag_of(int step);

}  // namespace kedge::faults
