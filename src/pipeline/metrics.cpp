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

void Metrics::committed(const CommitHead& commit, const CommitBytes& bytes, double blocked_s) {
  count([&](Counters& counters) {
    ++counters.commits;
    counters.saved_bytes += bytes.own;
    counters.blocked_s += blocked_s;
    counters.blocked_last_s = blocked_s;
  });
  write({.name = "commit", .commit = &commit, .bytes = bytes.total, .blocked_s = blocked_s});
}

void Metrics::took_snapshot(const CommitHead& commit, const CommitBytes& bytes, double blocked_s) const {
  write({.name = "snapshot", .commit = &commit, .bytes = bytes.total, .blocked_s = blocked_s});
}

void Metrics::reached(const CommitHead& commit, Level level, const CommitBytes& bytes, std::optional<double> after_s) {
  const bool persistent = level == Level::persistent;
  count([&](Counters& counters) {
    ++(persistent ? counters.flushes : counters.protections);
    (persistent ? counters.flushed_bytes : counters.protected_bytes) += bytes.own;
    if (!after_s) return;
    double& last_s = persistent ? counters.persistent_last_s : counters.protected_last_s;
    double& max_s = persistent ? counters.persistent_max_s : counters.protected_max_s;
    last_s = *after_s;
    max_s = std::max(max_s, last_s);
  });
  Event event{.name = to_string(level), .commit = &commit, .seconds = after_s};
  if (bytes.total != 0) event.bytes = bytes.total;
  write(event);
}

void Metrics::failed(const CommitHead& commit, Level level, const Failure& failure) {
  const bool persistent = level == Level::persistent;
  count([&](Counters& counters) { ++(persistent ? counters.flushes_failed : counters.protections_failed); });
  write({.name = persistent ? "flush_failed" : "protect_failed", .commit = &commit, .failure = &failure});
}

void Metrics::retries(const CommitHead& commit, const Failure& failure, double wait_s) {
  count([](Counters& counters) { ++counters.flush_retries; });
  write({.name = "flush_retry", .commit = &commit, .seconds = wait_s, .failure = &failure});
}

void Metrics::skipped(const CommitHead& commit) {
  count([](Counters& counters) { ++counters.flushes_skipped; });
  write({.name = "flush_skipped", .commit = &commit});
}

void Metrics::damaged(const CommitHead& commit, const Failure& failure) const {
  write({.name = "damaged", .commit = &commit, .failure = &failure});
}

void Metrics::retired(const CommitHead& commit) {
  count([](Counters& counters) { ++counters.retired; });
  write({.name = "retired", .commit = &commit});
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
