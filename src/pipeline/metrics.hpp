// Counters and events of an engine.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string_view>
#include <utility>

#include "kedge/counters.hpp"
#include "kedge/error.hpp"
#include "kedge/selection.hpp"
#include "kedge/types.hpp"
#include "pipeline/event_log.hpp"
#include "pipeline/progress.hpp"

namespace kedge::pipeline {

/// The result of an open.
struct OpenResult {
  std::uint64_t total_bytes = 0;
  std::uint64_t fetched_bytes = 0;
  RecoverySource source = RecoverySource::in_place;
};

/// Of one rank. Local and thread-safe; throws no Error.
class Metrics final : public CommitObserver {
 public:
  /// `events` is null on ranks that write none.
  explicit Metrics(std::unique_ptr<EventLog> events) : events_(std::move(events)) {}

  /// All counters except `pending`.
  [[nodiscard]] Counters counters() const;

  void record_start(int ranks, double seconds) const;
  void on_committed(const CommitProgress& progress) override;
  void on_snapshot(const CommitProgress& progress) override;
  void on_snapshot_lost(const CommitProgress& progress, const Failure& failure) override;
  void on_level_reached(const CommitProgress& progress, const StageProgress& stage) override;
  void on_stage_failed(const CommitProgress& progress, const StageProgress& stage) override;
  void on_stage_retry(const CommitProgress& progress, const StageProgress& stage, double wait_s) override;
  void on_damaged(const CommitHead& commit, const Failure& failure) override;
  void on_retired(std::span<const CommitHead> commits) override;
  void record_open(const CommitHead& commit, const OpenResult& from, double seconds);
  void record_failed_checkpoint(std::string_view tag, const Failure& failure);
  void record_finalize() const;

 private:
  void write_event(const Event& event) const {
    if (events_) events_->write(event);
  }
  template <class Change>
  void change_counters(Change&& change) {
    const std::lock_guard guard(mutex_);
    change(counters_);
  }

  std::unique_ptr<EventLog> events_;
  mutable std::mutex mutex_;
  Counters counters_;
};

}  // namespace kedge::pipeline
