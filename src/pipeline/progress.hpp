// How far a commit has come, stage by stage, and who hears of it.
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

/// What a commit is in bytes.
struct CommitBytes {
  std::uint64_t own = 0;    ///< of this rank's container
  std::uint64_t total = 0;  ///< of all; 0: not known
};

enum class StageState : std::uint8_t { not_due, due, reached, failed };

/// One stage of one commit.
struct StageProgress {
  std::string_view name;      ///< of the stage
  Level level = Level::none;  ///< that the stage reaches
  StageState state = StageState::not_due;
  std::uint64_t tries = 0;
  /// Why the stage failed. If it is `reached` all the same, the engine must end after it.
  std::optional<Failure> failure = {};
  std::optional<double> after_s = {};  ///< from the commit until the stage was reached, if the commit was just made
  double prepare_s = 0;                ///< what Stage::prepare took
};

/// Why a commit goes through stages.
enum class Reason : std::uint8_t {
  made,     ///< it was just made
  owed,     ///< it should have been there, and was left for later
  required  ///< the application waits for a level, or an open needs it
};

struct CommitProgress {
  CommitHead commit;
  CommitBytes bytes = {};
  double submitted_s = 0;  ///< by the engine's clock
  double blocked_s = 0;    ///< how long the application waited for this commit
  double in_stages_s = 0;  ///< of that, in stages
  Reason reason = Reason::made;
  std::vector<StageProgress> stages = {};  ///< in the pipeline's order

  [[nodiscard]] bool is_due() const {
    return std::ranges::any_of(stages, [](const StageProgress& stage) { return stage.state == StageState::due; });
  }
  /// The stage that reaches this level; null: there is none.
  [[nodiscard]] const StageProgress* to(Level level) const {
    const auto found = std::ranges::find(stages, level, &StageProgress::level);
    return found == stages.end() ? nullptr : &*found;
  }
  [[nodiscard]] bool has_reached(Level level) const {
    const StageProgress* const stage = to(level);
    return stage != nullptr && stage->state == StageState::reached;
  }
  [[nodiscard]] std::optional<Failure> failure_to(Level level) const {
    const StageProgress* const stage = to(level);
    return stage == nullptr ? std::nullopt : stage->failure;
  }
};

/// Hears of each change in the progress of commits: local, in the thread in which it happens. An observer must not
/// throw Error, and must not communicate.
class CommitObserver {
 public:
  CommitObserver() = default;
  CommitObserver(const CommitObserver&) = delete;
  CommitObserver& operator=(const CommitObserver&) = delete;
  virtual ~CommitObserver() = default;

  /// The commit is sealed on every rank, and the application waits for it no more.
  virtual void committed(const CommitProgress& /*progress*/) {}
  /// The commit is a snapshot, which is to be sealed in the background.
  virtual void took_snapshot(const CommitProgress& /*progress*/) {}
  /// A snapshot could not be sealed: it is no commit.
  virtual void lost(const CommitProgress& /*progress*/, const Failure& /*failure*/) {}
  virtual void reached(const CommitProgress& /*progress*/, const StageProgress& /*stage*/) {}
  virtual void failed(const CommitProgress& /*progress*/, const StageProgress& /*stage*/) {}
  /// A stage failed, see StageProgress::failure, and is tried again after so many seconds.
  virtual void retries(const CommitProgress& /*progress*/, const StageProgress& /*stage*/, double /*wait_s*/) {}
  /// Nobody tries any more to take a commit that was opened through this stage, see StageProgress::failure.
  virtual void gave_up(const CommitProgress& /*progress*/, const StageProgress& /*stage*/) {}
  /// No stage is due any more.
  virtual void finished(const CommitProgress& /*progress*/) {}
  /// A file of a commit was found damaged in the background.
  virtual void damaged(const CommitHead& /*commit*/, const Failure& /*failure*/) {}
  /// Superseded commits were removed from the stores; `commits` may be empty.
  virtual void retired(std::span<const CommitHead> /*commits*/) {}
};

/// All who want to hear. They outlive it.
class CommitObservers {
 public:
  explicit CommitObservers(std::vector<CommitObserver*> observers) : observers_(std::move(observers)) {}
  /// As in tell(&CommitObserver::reached, progress, stage).
  template <class... Parameters, class... Arguments>
  void tell(void (CommitObserver::*event)(Parameters...), const Arguments&... arguments) const {
    for (CommitObserver* const observer : observers_) (observer->*event)(arguments...);
  }

 private:
  std::vector<CommitObserver*> observers_;
};

}  // namespace kedge::pipeline
