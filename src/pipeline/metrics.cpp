#include "pipeline/metrics.hpp"

#include <algorithm>

namespace kedge::pipeline {

Counters Metrics::counters() const {
  const std::lock_guard guard(mutex_);
  return counters_;
}

void Metrics::started(int ranks, double seconds) const {
  write({.name = "start", .ranks = ranks, .seconds = seconds, .says_whose = true});
}

void Metrics::on_committed(const CommitProgress& progress) {
  count([&](Counters& counters) {
    ++counters.commits;
    counters.saved_bytes += progress.bytes.own;
    counters.blocked_s += progress.blocked_s;
    counters.blocked_last_s = progress.blocked_s;
  });
  write({.name = "commit", .commit = &progress.commit, .bytes = progress.bytes.total, .blocked_s = progress.blocked_s});
}

void Metrics::on_snapshot(const CommitProgress& progress) {
  write(
      {.name = "snapshot", .commit = &progress.commit, .bytes = progress.bytes.total, .blocked_s = progress.blocked_s});
}

void Metrics::on_snapshot_lost(const CommitProgress& progress, const Failure& failure) {
  checkpoint_failed(progress.commit.tag, failure);
}

void Metrics::on_level_reached(const CommitProgress& progress, const StageProgress& stage) {
  if (stage.level == Level::none) return;
  const bool persistent = stage.level == Level::persistent;
  count([&](Counters& counters) {
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
  write(event);
}

void Metrics::on_stage_failed(const CommitProgress& progress, const StageProgress& stage) {
  if (stage.level == Level::none || stage.state == StageState::reached) return;
  const bool persistent = stage.level == Level::persistent;
  count([&](Counters& counters) { ++(persistent ? counters.flushes_failed : counters.protections_failed); });
  write(
      {.name = persistent ? "flush_failed" : "protect_failed", .commit = &progress.commit, .failure = &*stage.failure});
}

void Metrics::on_stage_retry(const CommitProgress& progress, const StageProgress& stage, double wait_s) {
  if (stage.level != Level::persistent) return;
  count([](Counters& counters) { ++counters.flush_retries; });
  write({.name = "flush_retry", .commit = &progress.commit, .seconds = wait_s, .failure = &*stage.failure});
}

void Metrics::on_damaged(const CommitHead& commit, const Failure& failure) {
  write({.name = "damaged", .commit = &commit, .failure = &failure});
}

void Metrics::on_retired(std::span<const CommitHead> commits) {
  for (const CommitHead& commit : commits) {
    count([](Counters& counters) { ++counters.retired; });
    write({.name = "retired", .commit = &commit});
  }
}

void Metrics::opened(const CommitHead& commit, const OpenedFrom& from, double seconds) {
  count([&](Counters& counters) {
    ++counters.opens;
    counters.fetched_bytes += from.fetched_bytes;
  });
  write({.name = "open",
         .commit = &commit,
         .bytes = from.total_bytes,
         .seconds = seconds,
         .source = to_string(from.source)});
}

void Metrics::checkpoint_failed(std::string_view tag, const Failure& failure) {
  count([](Counters& counters) { ++counters.commits_failed; });
  write({.name = "commit_failed", .tag = tag, .failure = &failure});
}

void Metrics::finalized() const { write({.name = "finalize"}); }

}  // namespace kedge::pipeline
