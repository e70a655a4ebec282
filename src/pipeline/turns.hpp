// Which checkpoints a stage takes by itself: every so many of them.
#pragma once

#include <atomic>
#include <cstdint>

namespace kedge::pipeline {

/// Counts checkpoints for one stage. The same on every rank, but for what a worker noted, which one rank may know
/// before another.
class Turns {
 public:
  enum class Rule : std::uint8_t {
    every_nth,      ///< of those that are made
    nth_since_last  ///< of those that are made after the last that the stage took; after a failure the next one
  };

  /// `every` 0: no checkpoint by itself.
  Turns(Rule rule, std::uint64_t every) noexcept : rule_(rule), every_(every) {}

  [[nodiscard]] bool has_any() const noexcept { return every_ != 0; }
  /// Whether ranks must compare what they noted before one is taken, see take_failed().
  [[nodiscard]] bool compares() const noexcept { return has_any() && rule_ == Rule::nth_since_last; }

  // From the application's thread.

  /// Another checkpoint was made.
  void count() noexcept { ++made_, ++since_last_; }
  /// Whether the stage is due for the checkpoint that was counted last. `failed`: take_failed() said so on some rank.
  [[nodiscard]] bool is_due(bool failed) const noexcept {
    return has_any() && (failed || (rule_ == Rule::every_nth ? made_ % every_ == 0 : since_last_ >= every_));
  }
  /// Whether it may be due for the next one, as far as this rank knows.
  [[nodiscard]] bool may_be_due_next() const noexcept {
    return has_any() && (failed_ || (rule_ == Rule::every_nth ? (made_ + 1) % every_ == 0 : since_last_ + 1 >= every_));
  }
  /// The stage took one, or a worker has it in hand: the count begins anew.
  void restart() noexcept { since_last_ = 0; }
  /// The next one is due, if any is.
  void make_due() noexcept { since_last_ = every_; }

  // From any thread.

  /// What became of the last one that the stage took.
  void note_result(bool failed) noexcept {
    if (rule_ == Rule::nth_since_last) failed_ = failed;
  }
  /// The checkpoint that the stage was to take became no commit.
  void note_lost() noexcept { failed_ = true; }
  /// Whether the next one must make up for one that failed or was lost; asked once.
  [[nodiscard]] bool take_failed() noexcept { return failed_.exchange(false); }

 private:
  Rule rule_;
  std::uint64_t every_;
  std::uint64_t made_ = 0;
  std::uint64_t since_last_ = 0;
  std::atomic<bool> failed_ = false;
};

}  // namespace kedge::pipeline
