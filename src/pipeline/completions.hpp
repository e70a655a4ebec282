// Calls back when a commit has reached a level or cannot reach it.
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

/// Observer calls are thread-safe; the other calls are for the application's thread.
class Completions final : public CommitObserver {
 public:
  using Callback = std::function<void(const std::optional<Failure>& failure)>;
  using IsInProgress = std::function<bool(const Id128& commit_id)>;

  /// `is_in_progress` decides how long an outcome is open: a commit may be pending after a newer one has replaced it in
  /// the ledger.
  Completions(const commits::Ledger& ledger, IsInProgress is_in_progress, Log log)
      : ledger_(ledger), is_in_progress_(std::move(is_in_progress)), log_(std::move(log)) {}

  /// Throws bad_state after deliver_all().
  void add_callback(const CommitHead& commit, Level level, Callback callback);
  /// The stage that should have taken the commit to the level failed.
  void record_failure(const Id128& commit_id, Level level, const Failure& failure);
  /// Calls back for commits that have reached their level or cannot. Logs exceptions of callbacks.
  void deliver_outcomes();
  /// Calls all remaining callbacks: no commit will get any further.
  void deliver_all();
  /// Whether a callback is running.
  [[nodiscard]] bool is_in_callback() const noexcept { return is_in_callback_; }

  void on_level_reached(const CommitProgress& progress, const StageProgress& stage) override;
  void on_stage_failed(const CommitProgress& progress, const StageProgress& stage) override;
  void on_finished(const CommitProgress& progress) override;
  void on_stage_dropped(const CommitProgress& progress, const StageProgress& stage) override;
  void on_snapshot_lost(const CommitProgress& progress, const Failure& failure) override;

 private:
  struct PendingCallback {
    CommitHead commit;
    Level level = Level::none;
    Callback callback;
  };
  /// The outcome; nothing while it is open.
  [[nodiscard]] std::optional<std::optional<Failure>> outcome(const PendingCallback& expected) const;
  void run_callback(const PendingCallback& expected, const std::optional<Failure>& failure);
  void drop_stale_outcomes();

  const commits::Ledger& ledger_;
  IsInProgress is_in_progress_;
  Log log_;
  std::vector<PendingCallback> pending_callbacks_;
  bool is_in_callback_ = false;
  bool is_closed_ = false;
  mutable std::mutex mutex_;
  // Of commits that are in the ledger or expected.
  std::map<Id128, Level> reached_;
  std::map<std::pair<Id128, Level>, Failure> failures_;
};

}  // namespace kedge::pipeline
