// Who wants to hear that a commit has reached a level, or cannot.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "base/log.hpp"
#include "commits/ledger.hpp"
#include "kedge/error.hpp"
#include "kedge/types.hpp"
#include "pipeline/progress.hpp"

namespace kedge::pipeline {

/// What becomes of commits comes from whichever thread meets it; all else is the application's thread's.
class Completions final : public CommitObserver {
 public:
  using Callback = std::function<void(const std::optional<Failure>& failure)>;
  using IsUnderWay = std::function<bool(const Id128& commit_id)>;

  /// What becomes of a commit is said as long as it is under way: that outlasts its place in the ledger where a newer
  /// one took it already.
  Completions(const commits::Ledger& ledger, IsUnderWay is_under_way, Log log)
      : ledger_(ledger), is_under_way_(std::move(is_under_way)), log_(std::move(log)) {}

  /// Throws bad_state once all others have been told for the last time.
  void expect(const CommitHead& commit, Level level, Callback callback);
  /// The commit does not reach the level in its turn.
  void note_failed(const Id128& commit_id, Level level, const Failure& failure);
  /// Calls back whoever's commit has reached its level, or cannot. What a callback throws is logged.
  void deliver();
  /// Calls back everybody: nothing goes on any more.
  void deliver_all();
  /// Whether a callback is what is running now.
  [[nodiscard]] bool is_in_callback() const noexcept { return calls_; }

  void reached(const CommitProgress& progress, const StageProgress& stage) override;
  void failed(const CommitProgress& progress, const StageProgress& stage) override;
  void finished(const CommitProgress& progress) override;
  void gave_up(const CommitProgress& progress, const StageProgress& stage) override;
  void lost(const CommitProgress& progress, const Failure& failure) override;

 private:
  struct Expected {
    CommitHead commit;
    Level level = Level::none;
    Callback callback;
  };
  /// What has become of it; nothing if that is still open.
  [[nodiscard]] std::optional<std::optional<Failure>> outcome(const Expected& expected) const;
  void call(const Expected& expected, const std::optional<Failure>& failure);
  void drop_stale_outcomes();

  const commits::Ledger& ledger_;
  IsUnderWay is_under_way_;
  Log log_;
  std::vector<Expected> expected_;
  bool calls_ = false;
  bool closed_ = false;
  mutable std::mutex mutex_;
  // Of commits that the ledger knows, or that somebody waits for.
  std::map<Id128, Level> reached_;
  std::map<std::pair<Id128, Level>, Failure> failures_;
};

}  // namespace kedge::pipeline
