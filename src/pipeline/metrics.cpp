#include "pipeline/metrics.hpp"

#include <algorithm>

namespace kedge::pipeline {

Counters Metrics::counters() const {
  const std::lock_guard guard(mutex_);
  return counters_;
}

void Metrics::record_start(int ranks, double seconds) const {
  write_event({.name = "start", .ranks = ranks, .seconds = seconds, .has_origin = true});
}

void Metrics::on_committed(const CommitProgress& progress) {
  change_counters([&](Counters& counters) {
    ++counters.commits;
    counters.saved_bytes += progress.bytes.own;
    counters.blocked_s += progress.blocked_s;
    counters.blocked_last_s = progress.blocked_s;
  });
  write_event(
      {.name = "commit", .commit = &progress.commit, .bytes = progress.bytes.total, .blocked_s = progress.blocked_s});
}

void Metrics::on_snapshot(const CommitProgress& progress) {
  write_event(
      {.name = "snapshot", .commit = &progress.commit, .bytes = progress.bytes.total, .blocked_s = progress.blocked_s});
}

void Metrics::on_snapshot_lost(const CommitProgress& progress, const Failure& failure) {
  record_failed_checkpoint(progress.commit.tag, failure);
}

void Metrics::on_level_reached(const CommitProgress& progress, const StageProgress& stage) {
  if (stage.level == Level::none) return;
  const bool persistent = stage.level == Level::persistent;
  change_counters([&](Counters& counters) {
    ++(persistent ? counters.flushes : counters.protections);
    (persistent ? counters.flushed_bytes : counters.protected_bytes) += progress.bytes.own;
    if (!stage.after_s) return;
    double& last_s = persistent ? counters.persistent_last_s : counters.protected_last_s;
    double& max_s = persistent ? counters.persistent_max_s : counters.protected_max_s;
    last_s = *stage.after_s;
    max_s = std::max(max_s, last_s);
  });
  Event event{.name = to_string(stage.level), .commit = &progress.commit, .seconds = stage.after_s};
  if (progress.bytes.total != 0) event.bytes = progress.bytes.total;
  write_event(event);
}

void Metrics::on_stage_failed(const CommitProgress& progress, const StageProgress& stage) {
  if (stage.level == Level::none || stage.state == StageState::reached) return;
  const bool persistent = stage.level == Level::persistent;
  change_counters([&](Counters& counters) { ++(persistent ? counters.flushes_failed : counters.protections_failed); });
  write_event(
      {.name = persistent ? "flush_failed" : "protect_failed", .commit = &progress.commit, .failure = &*stage.failure});
}

void Metrics::on_stage_retry(const CommitProgress& progress, const StageProgress& stage, double wait_s) {
  if (stage.level != Level::persistent) return;
  change_counters([](Counters& counters) { ++counters.flush_retries; });
  write_event({.name = "flush_retry", .commit = &progress.commit, .seconds = wait_s, .failure = &*stage.failure});
}

void Metrics::on_damaged(const CommitHead& commit, const Failure& failure) {
  write_event({.name = "damaged", .commit = &commit, .failure = &failure});
}

void Metrics::on_retired(std::span<const CommitHead> commits) {
  for (const CommitHead& commit : commits) {
    change_counters([](Counters& counters) { ++counters.retired; });
    write_event({.name = "retired", .commit = &commit});
  }
}

void Metrics::record_open(const CommitHead& commit, const OpenResult& from, double seconds) {
  change_counters([&](Counters& counters) {
    ++counters.opens;
    counters.fetched_bytes += from.fetched_bytes;
  });
  write_event({.name = "open",
               .commit = &commit,
               .bytes = from.total_bytes,
               .seconds = seconds,
               .source = to_string(from.source)});
}

void Metrics::record_failed_checkpoint(std::string_view tag, const Failure& failure) {
  change_counters([](Counters& counters) { ++counters.commits_failed; });
  write_event({.name = "commit_failed", .tag = tag, .failure = &failure});
}

void Metrics::record_finalize() const { write_event({.name = "finalize"}); }

}  // namespace kedge::pipeline
