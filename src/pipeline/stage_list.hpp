// The stages of a pipeline, and which of them are due for a commit.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "pipeline/progress.hpp"
#include "pipeline/stage.hpp"

namespace kedge::pipeline {

/// Counts checkpoints for one stage. Equal on every rank, except for a worker's notes, which ranks may learn at
/// different times.
class StagePolicy {
 public:
  enum class Rule : std::uint8_t {
    every_nth,      ///< every nth checkpoint
    nth_since_last  ///< after the last checkpoint that the stage took; the next one after a failure
  };

  /// `every` 0 schedules none.
  StagePolicy(Rule rule, std::uint64_t every) noexcept : rule_(rule), every_(every) {}

  [[nodiscard]] bool is_enabled() const noexcept { return every_ != 0; }
  /// Whether ranks must compare take_failure() before a checkpoint.
  [[nodiscard]] bool needs_agreement() const noexcept { return is_enabled() && rule_ == Rule::nth_since_last; }

  // For the application's thread.

  void count_checkpoint() noexcept { ++checkpoint_count_, ++count_since_last_; }
  /// Whether the stage is due for the newest checkpoint. `failed`: take_failure() was true on some rank.
  [[nodiscard]] bool is_due(bool failed) const noexcept {
    return is_enabled() &&
           (failed || (rule_ == Rule::every_nth ? checkpoint_count_ % every_ == 0 : count_since_last_ >= every_));
  }
  /// Whether it may be due for the next checkpoint, as far as this rank knows.
  [[nodiscard]] bool may_be_due_next() const noexcept {
    return is_enabled() && (has_failure_ || (rule_ == Rule::every_nth ? (checkpoint_count_ + 1) % every_ == 0
                                                                      : count_since_last_ + 1 >= every_));
  }
  /// Restarts the count: the stage took a checkpoint, or a worker has it.
  void restart_count() noexcept { count_since_last_ = 0; }
  /// Makes the stage due for the next checkpoint, if it is scheduled; the next turn is `every` checkpoints after that.
  void make_due() noexcept {
    if (is_enabled()) checkpoint_count_ = every_ - 1;
    count_since_last_ = every_;
  }

  // Thread-safe.

  /// Records the result of the last checkpoint that the stage took.
  void mark_result(bool failed) noexcept {
    if (rule_ == Rule::nth_since_last) has_failure_ = failed;
  }
  /// Records that the checkpoint that the stage should have taken became no commit.
  void mark_lost() noexcept { has_failure_ = true; }
  /// Returns whether the next checkpoint must make up for a failed or lost one; resets it.
  [[nodiscard]] bool take_failure() noexcept { return has_failure_.exchange(false); }

 private:
  Rule rule_;
  std::uint64_t every_;
  std::uint64_t checkpoint_count_ = 0;
  std::uint64_t count_since_last_ = 0;
  std::atomic<bool> has_failure_ = false;
};

struct StageWithPolicy {
  std::unique_ptr<Stage> stage;
  /// Has parts that other threads may change after a failure.
  std::unique_ptr<StagePolicy> policy;

  /// Whether the schedule takes checkpoints there.
  [[nodiscard]] bool is_scheduled() const { return policy->is_enabled() && stage->is_possible(); }
};

/// In the order of execution; equal on every rank.
class StageList {
 public:
  explicit StageList(std::vector<StageWithPolicy> stages) : stages_(std::move(stages)) {}

  [[nodiscard]] std::size_t size() const noexcept { return stages_.size(); }
  [[nodiscard]] StageWithPolicy& operator[](std::size_t number) { return stages_[number]; }
  [[nodiscard]] const std::vector<StageWithPolicy>& all_stages() const noexcept { return stages_; }
  /// Returns the index of the stage that reaches this level.
  [[nodiscard]] std::size_t index_of(Level level) const;
  [[nodiscard]] const Stage& stage_of(Level level) const { return *stages_[index_of(level)].stage; }
  /// Whether the schedule takes checkpoints to this level.
  [[nodiscard]] bool is_scheduled(Level level) const { return stages_[index_of(level)].is_scheduled(); }
  /// Returns the highest level to which the schedule takes checkpoints.
  [[nodiscard]] Level highest_level() const;

  /// Returns the number of bytes that a rank sends for a container of this size.
  [[nodiscard]] std::uint64_t sent_bytes(std::uint64_t container_bytes) const;

  /// Returns progress with no stage due.
  [[nodiscard]] CommitProgress progress_of(const CommitHead& commit) const;
  /// Marks the stages that are due for a new commit: by schedule, but none above `highest`, and always the stage of
  /// `highest`; for an output, by Stage::for_outputs. `failed` has a bit for each stage that must make up for
  /// a failed checkpoint.
  void mark_due(CommitProgress& progress, std::optional<Level> highest, std::uint64_t failed);
  /// Bits of the stages that must make up for a checkpoint, as far as this rank knows; resets them.
  [[nodiscard]] std::uint64_t take_failed_stages();
  /// Whether ranks may know different failures.
  [[nodiscard]] bool needs_agreement() const;
  /// Counts a new checkpoint.
  void count_checkpoint();
  /// Restarts the count of the stages that are due for this checkpoint: a worker has them, or they will now run.
  void restart_due(const CommitProgress& progress);

 private:
  [[nodiscard]] static bool is_due(const StageWithPolicy& scheduled, std::optional<Level> highest, bool failed);

  std::vector<StageWithPolicy> stages_;
};

}  // namespace kedge::pipeline
