#include "pipeline/commit_log.hpp"

#include <algorithm>
#include <utility>

#include "base/text.hpp"
#include "pipeline/snapshots.hpp"

namespace kedge::pipeline {

CommitLog::CommitLog(bool is_root, const commits::Ledger& ledger, const StageList& stages, Scheme scheme,
                     std::string run, Log log)
    : is_root_(is_root),
      ledger_(ledger),
      stages_(stages),
      scheme_(scheme),
      run_(std::move(run)),
      log_(std::move(log)) {}

std::string CommitLog::commit_name(const CommitHead& commit) const {
  return run_.empty() ? commit.tag : compose("{} of run '{}'", commit.tag, run_);
}

void CommitLog::log_submitted(const CommitProgress& progress) {
  if (is_root_) log_.debug(compose("{} is local; its other stages run in the background", progress.commit.tag));
}

void CommitLog::on_snapshot(const CommitProgress& progress) {
  if (is_root_) log_.debug(compose("{} is a snapshot; its other stages run in the background", progress.commit.tag));
}

void CommitLog::on_snapshot_lost(const CommitProgress& progress, const Failure& failure) {
  if (is_root_) log_.warning(lost_snapshot_warning(ledger_, progress.commit, failure));
}

void CommitLog::on_level_reached(const CommitProgress& progress, const StageProgress& stage) {
  if (!is_root_ || stage.level != Level::persistent) return;
  if (const auto line = flush_failures_.on_success(progress.commit)) log_.info(*line);
}

/// If the application waits for the level, its call throws the failure instead.
void CommitLog::on_stage_failed(const CommitProgress& progress, const StageProgress& stage) {
  if (!is_root_ || progress.reason == Reason::required) return;
  const auto scheduled = std::ranges::find_if(
      stages_.all_stages(), [&](const StageWithPolicy& one) { return one.stage->name() == stage.name; });
  const std::string line = scheduled->stage->failure_warning(progress.commit, *stage.failure, stage.tries);
  if (stage.level != Level::persistent || flush_failures_.should_log(*stage.failure)) log_.warning(line);
  else log_.debug(line);
}

void CommitLog::on_finished(const CommitProgress& progress) {
  if (!is_root_) return;
  if (progress.reason == Reason::committed) log_.info(committed_line(progress));
  else if (progress.has_reached(Level::persistent) && !progress.stage_failure(Level::persistent))
    log_.info(compose("{} is persistent", commit_name(progress.commit)));
}

std::string CommitLog::committed_line(const CommitProgress& progress) const {
  const CommitHead& commit = progress.commit;
  std::string level = progress.has_reached(Level::protected_) ? compose("protected ({})", to_string(scheme_)) : "local";
  if (progress.has_reached(Level::persistent)) level += " and persistent";
  std::string line = compose("committed {} (generation {}): {} on {} rank{}, {}, blocked {}", commit_name(commit),
                             commit.generation, human_bytes(progress.bytes.total), commit.world_size,
                             commit.world_size == 1 ? "" : "s", level, human_seconds(progress.blocked_s));
  for (const StageProgress& stage : progress.stages) {
    if (stage.state != StageState::reached || !stage.after_s) continue;
    const std::string_view what = stage.level == Level::none ? stage.name : to_string(stage.level);
    line += compose(", {} after {}", what, human_seconds(*stage.after_s));
  }
  return line;
}

bool is_transient(const Failure& failure) {
  return failure.code == ErrorCode::no_space || failure.code == ErrorCode::io;
}

bool FlushFailures::should_log(const Failure& failure) {
  if (!is_transient(failure)) return true;
  const std::lock_guard guard(mutex_);
  // A full filesystem may be found before or during writing, with different errno: treat both alike.
  const State now{failure.code, failure.code == ErrorCode::no_space ? 0 : failure.system_errno};
  return std::exchange(last_failure_, now) != now;
}

std::optional<std::string> FlushFailures::on_success(const CommitHead& commit) {
  const std::lock_guard guard(mutex_);
  if (!std::exchange(last_failure_, std::nullopt)) return std::nullopt;
  return compose("flushes to the prefix succeed again, starting with {}", commit.tag);
}

}  // namespace kedge::pipeline
