// A commit's progress through the stages, and its observers.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "kedge/error.hpp"
#include "kedge/types.hpp"

namespace kedge::pipeline {

/// The size of a commit.
struct CommitBytes {
  std::uint64_t own = 0;    ///< this rank's container
  std::uint64_t total = 0;  ///< all containers; 0 if unknown
};

enum class StageState : std::uint8_t { not_due, due, reached, failed };

/// Progress of one stage of a commit.
struct StageProgress {
  std::string_view name;
  Level level = Level::none;  ///< reached by the stage
  StageState state = StageState::not_due;
  std::uint64_t tries = 0;
  /// Why the stage failed. If the stage is `reached` nevertheless, the engine must end.
  std::optional<Failure> failure = {};
  std::optional<double> after_s = {};  ///< time from the commit to reaching the stage, for new commits
  double prepare_s = 0;                ///< time in Stage::prepare
};

/// Why a commit goes through stages.
enum class Reason : std::uint8_t {
  committed,  ///< it is new
  deferred,   ///< the stage was left for later
  required    ///< the application waits for a level, or an open needs it
};

struct CommitProgress {
  CommitHead commit;
  CommitBytes bytes = {};
  double submitted_s = 0;  ///< time by the engine's clock
  double blocked_s = 0;    ///< the application's waiting time for this commit
  double in_stages_s = 0;  ///< part of blocked_s
  Reason reason = Reason::committed;
  std::vector<StageProgress> stages = {};  ///< all stages, in the pipeline's order

  [[nodiscard]] bool has_due_stage() const {
    return std::ranges::any_of(stages, [](const StageProgress& stage) { return stage.state == StageState::due; });
  }
  /// The stage that reaches this level; null if there is none.
  [[nodiscard]] const StageProgress* find_stage(Level level) const {
    const auto found = std::ranges::find(stages, level, &StageProgress::level);
    return found == stages.end() ? nullptr : &*found;
  }
  [[nodiscard]] bool has_reached(Level level) const {
    const StageProgress* const stage = find_stage(level);
    return stage != nullptr && stage->state == StageState::reached;
  }
  [[nodiscard]] std::optional<Failure> stage_failure(Level level) const {
    const StageProgress* const stage = find_stage(level);
    return stage == nullptr ? std::nullopt : stage->failure;
  }
};

/// Observes the progress of commits: called locally, in the thread in which it happens. Observers must not throw Error
/// or communicate.
class CommitObserver {
 public:
  CommitObserver() = default;
  CommitObserver(const CommitObserver&) = delete;
  CommitObserver& operator=(const CommitObserver&) = delete;
  virtual ~CommitObserver() = default;

  /// The commit is sealed on every rank, and the application waits no more.
  virtual void on_committed(const CommitProgress& /*progress*/) {}
  /// The commit is a snapshot, which a worker will seal.
  virtual void on_snapshot(const CommitProgress& /*progress*/) {}
  /// A snapshot could not be sealed, so it is no commit.
  virtual void on_snapshot_lost(const CommitProgress& /*progress*/, const Failure& /*failure*/) {}
  virtual void on_level_reached(const CommitProgress& /*progress*/, const StageProgress& /*stage*/) {}
  virtual void on_stage_failed(const CommitProgress& /*progress*/, const StageProgress& /*stage*/) {}
  /// A stage failed (StageProgress::failure) and is retried after `wait_s`.
  virtual void on_stage_retry(const CommitProgress& /*progress*/, const StageProgress& /*stage*/, double /*wait_s*/) {}
  /// An opened commit is not taken through this stage any more, see StageProgress::failure.
  virtual void on_stage_dropped(const CommitProgress& /*progress*/, const StageProgress& /*stage*/) {}
  /// No stage is due any more.
  virtual void on_finished(const CommitProgress& /*progress*/) {}
  /// A damaged file of a commit was found in the background.
  virtual void on_damaged(const CommitHead& /*commit*/, const Failure& /*failure*/) {}
  /// Superseded commits were removed from the stores; `commits` may be empty.
  virtual void on_retired(std::span<const CommitHead> /*commits*/) {}
};

/// A list of observers, which must outlive it.
class CommitObservers {
 public:
  explicit CommitObservers(std::vector<CommitObserver*> observers) : observers_(std::move(observers)) {}
  /// Calls every observer, e.g. notify(&CommitObserver::on_level_reached, progress, stage).
  template <class... Parameters, class... Arguments>
  void notify(void (CommitObserver::*event)(Parameters...), const Arguments&... arguments) const {
    for (CommitObserver* const observer : observers_) (observer->*event)(arguments...);
  }

 private:
  std::vector<CommitObserver*> observers_;
};

}  // namespace kedge::pipeline
