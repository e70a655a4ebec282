// The stages of a pipeline, and which of them are due for a commit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "pipeline/progress.hpp"
#include "pipeline/stage.hpp"
#include "pipeline/stage_policy.hpp"

namespace kedge::pipeline {

struct StageWithPolicy {
  std::unique_ptr<Stage> stage;
  /// Has parts that other threads may change after a failure.
  std::unique_ptr<StagePolicy> policy;

  /// Whether the schedule takes checkpoints there.
  [[nodiscard]] bool is_scheduled() const { return policy->has_any() && stage->is_possible(); }
};

/// In the order of execution; equal on every rank.
class StageList {
 public:
  explicit StageList(std::vector<StageWithPolicy> stages) : stages_(std::move(stages)) {}

  [[nodiscard]] std::size_t size() const noexcept { return stages_.size(); }
  [[nodiscard]] StageWithPolicy& operator[](std::size_t number) { return stages_[number]; }
  [[nodiscard]] const std::vector<StageWithPolicy>& all() const noexcept { return stages_; }
  /// The one that reaches this level.
  [[nodiscard]] std::size_t index_of(Level level) const;
  [[nodiscard]] const Stage& of(Level level) const { return *stages_[index_of(level)].stage; }
  /// Whether the schedule takes checkpoints to this level.
  [[nodiscard]] bool is_scheduled(Level level) const { return stages_[index_of(level)].is_scheduled(); }
  /// The highest level to which the schedule takes checkpoints.
  [[nodiscard]] Level highest_level() const;

  /// Bytes that a rank sends for a container of this size.
  [[nodiscard]] std::uint64_t sent_bytes(std::uint64_t container_bytes) const;

  /// Progress with no stage due.
  [[nodiscard]] CommitProgress progress_of(const CommitHead& commit) const;
  /// Marks the stages that are due for a new commit: by schedule, but none above `highest`, and always the stage of
  /// `highest`; for an output, by Stage::for_outputs. `failed` has a bit for each stage that must make up for
  /// a failed checkpoint.
  void mark_due(CommitProgress& progress, std::optional<Level> highest, std::uint64_t failed);
  /// Bits of the stages that must make up for a checkpoint, as far as this rank knows; resets them.
  [[nodiscard]] std::uint64_t take_failed();
  /// Whether ranks may know different failures.
  [[nodiscard]] bool needs_agreement() const;
  /// Counts a new checkpoint.
  void count();
  /// Restarts the count of the stages that are due for this checkpoint: a worker has them, or they will now run.
  void restart_due(const CommitProgress& progress);

 private:
  [[nodiscard]] static bool is_due(const StageWithPolicy& scheduled, std::optional<Level> highest, bool failed);

  std::vector<StageWithPolicy> stages_;
};

}  // namespace kedge::pipeline
