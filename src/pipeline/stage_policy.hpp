// Which checkpoints are scheduled for a stage: every Nth.
#pragma once

#include <atomic>
#include <cstdint>

namespace kedge::pipeline {

/// Counts checkpoints for one stage. Equal on every rank, except for a worker's notes, which ranks may learn at
/// different times.
class StagePolicy {
 public:
  enum class Rule : std::uint8_t {
    every_nth,      ///< of all checkpoints
    nth_since_last  ///< after the last checkpoint that the stage took; the next one after a failure
  };

  /// `every` 0 schedules none.
  StagePolicy(Rule rule, std::uint64_t every) noexcept : rule_(rule), every_(every) {}

  [[nodiscard]] bool has_any() const noexcept { return every_ != 0; }
  /// Whether ranks must compare take_failed() before a checkpoint.
  [[nodiscard]] bool needs_agreement() const noexcept { return has_any() && rule_ == Rule::nth_since_last; }

  // For the application's thread.

  void count() noexcept { ++made_, ++since_last_; }
  /// Whether the stage is due for the newest checkpoint. `failed`: take_failed() was true on some rank.
  [[nodiscard]] bool is_due(bool failed) const noexcept {
    return has_any() && (failed || (rule_ == Rule::every_nth ? made_ % every_ == 0 : since_last_ >= every_));
  }
  /// Whether it may be due for the next checkpoint, as far as this rank knows.
  [[nodiscard]] bool may_be_due_next() const noexcept {
    return has_any() && (failed_ || (rule_ == Rule::every_nth ? (made_ + 1) % every_ == 0 : since_last_ + 1 >= every_));
  }
  /// Restarts the count: the stage took a checkpoint, or a worker has it.
  void restart() noexcept { since_last_ = 0; }
  /// Makes the stage due for the next checkpoint, if it is scheduled.
  void make_due() noexcept { since_last_ = every_; }

  // Thread-safe.

  /// Notes the result of the last checkpoint that the stage took.
  void mark_result(bool failed) noexcept {
    if (rule_ == Rule::nth_since_last) failed_ = failed;
  }
  /// The checkpoint that the stage should have taken became no commit.
  void mark_lost() noexcept { failed_ = true; }
  /// Whether the next checkpoint must make up for a failed or lost one; resets it.
  [[nodiscard]] bool take_failed() noexcept { return failed_.exchange(false); }

 private:
  Rule rule_;
  std::uint64_t every_;
  std::uint64_t made_ = 0;
  std::uint64_t since_last_ = 0;
  std::atomic<bool> failed_ = false;
};

}  // namespace kedge::pipeline
