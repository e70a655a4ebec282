#include "pipeline/completions.hpp"

#include <algorithm>

#include "base/attempt.hpp"
#include "base/text.hpp"

namespace kedge::pipeline {

void Completions::add_callback(const CommitHead& commit, Level level, Callback callback) {
  if (is_closed_)
    throw Error(ErrorCode::bad_state, "this engine was finalized, so its commits will not reach any higher level");
  pending_callbacks_.push_back({commit, level, std::move(callback)});
}

void Completions::on_level_reached(const CommitProgress& progress, const StageProgress& stage) {
  const std::lock_guard guard(mutex_);
  Level& highest = reached_[progress.commit.id];
  highest = std::max(highest, stage.level);
}

/// If the application waits for the level, its call throws the failure. While the commit may still reach a higher
/// level, which includes this one, the outcome is open: see finished().
void Completions::on_stage_failed(const CommitProgress& progress, const StageProgress& stage) {
  const bool may_be_reached = std::ranges::any_of(progress.stages, [&](const StageProgress& other) {
    return other.state == StageState::due && other.level > stage.level;
  });
  if (progress.reason == Reason::required || may_be_reached) return;
  record_failure(progress.commit.id, stage.level, *stage.failure);
}

void Completions::on_finished(const CommitProgress& progress) {
  for (const StageProgress& stage : progress.stages) {
    if (stage.state == StageState::failed) record_failure(progress.commit.id, stage.level, *stage.failure);
  }
}

void Completions::on_stage_dropped(const CommitProgress& progress, const StageProgress& stage) {
  record_failure(progress.commit.id, stage.level, *stage.failure);
}

void Completions::on_snapshot_lost(const CommitProgress& progress, const Failure& failure) {
  for (const Level level : {Level::snapshot, Level::local, Level::protected_, Level::persistent}) {
    record_failure(progress.commit.id, level, failure);
  }
}

void Completions::record_failure(const Id128& commit_id, Level level, const Failure& failure) {
  const std::lock_guard guard(mutex_);
  failures_.insert_or_assign({commit_id, level}, failure);
}

std::optional<std::optional<Failure>> Completions::outcome(const PendingCallback& expected) const {
  const bool was_in_progress = is_in_progress_(expected.commit.id);  // first: when it is not, all that follows is known
  const auto entry = ledger_.known().find(expected.commit.id);
  if (ledger_.known().has_reached(expected.commit.id, expected.level)) return std::optional<Failure>();
  if (expected.level <= Level::snapshot) {
    const auto snapshot = ledger_.known().snapshot;
    if (snapshot && snapshot->id == expected.commit.id) return std::optional<Failure>();
  }
  const std::lock_guard guard(mutex_);
  const auto reached = reached_.find(expected.commit.id);
  if (reached != reached_.end() && reached->second >= expected.level) return std::optional<Failure>();
  const auto failure = failures_.find({expected.commit.id, expected.level});
  if (failure != failures_.end()) return failure->second;
  if (entry || was_in_progress) return std::nullopt;
  return Failure{ErrorCode::not_found, compose("a newer commit replaced {} in the stores before it was {}",
                                               expected.commit.tag, to_string(expected.level))};
}

void Completions::deliver_outcomes() {
  std::vector<std::pair<PendingCallback, std::optional<Failure>>> ready;
  std::vector<PendingCallback> open;
  for (PendingCallback& one : pending_callbacks_) {
    if (auto known = outcome(one)) ready.emplace_back(std::move(one), std::move(*known));
    else open.push_back(std::move(one));
  }
  pending_callbacks_ = std::move(open);  // before the calls, since a callback may add expectations
  for (const auto& [one, failure] : ready) run_callback(one, failure);
  drop_stale_outcomes();
}

void Completions::deliver_all() {
  deliver_outcomes();
  is_closed_ = true;
  for (const PendingCallback& one : std::exchange(pending_callbacks_, {})) {
    run_callback(one, Failure{ErrorCode::not_found, compose("the engine was finalized before {} was {}", one.commit.tag,
                                                            to_string(one.level))});
  }
}

void Completions::run_callback(const PendingCallback& expected, const std::optional<Failure>& failure) {
  const struct Calls {
    bool& calls;
    ~Calls() { calls = false; }  // also for exceptions that are no std::exception
  } calls{is_in_callback_ = true};
  const auto thrown = attempt([&] { expected.callback(failure); });
  if (thrown) {
    log_.warning(compose("the callback for {} threw: {}", expected.commit.tag, to_string(*thrown)));
  }
}

/// Keeps only outcomes of commits that are in the ledger or expected.
void Completions::drop_stale_outcomes() {
  const std::lock_guard guard(mutex_);
  const auto is_over = [&](const Id128& commit_id) {
    const auto is_of_it = [&](const PendingCallback& one) { return one.commit.id == commit_id; };
    return !ledger_.known().find(commit_id) && std::ranges::none_of(pending_callbacks_, is_of_it);
  };
  std::erase_if(reached_, [&](const auto& one) { return is_over(one.first); });
  std::erase_if(failures_, [&](const auto& one) { return is_over(one.first.first); });
}

}  // namespace kedge::pipeline
