// What an engine does, counted and told as events.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>

#include "kedge/counters.hpp"
#include "kedge/error.hpp"
#include "kedge/selection.hpp"
#include "kedge/types.hpp"
#include "pipeline/event_log.hpp"
#include "pipeline/stage.hpp"

namespace kedge::pipeline {

/// What open found.
struct OpenedFrom {
  std::uint64_t total_bytes = 0;
  std::uint64_t fetched_bytes = 0;  ///< by this rank
  RecoverySource source = RecoverySource::in_place;
};

/// Of one rank. Everything is local and may be called from any thread; nothing throws Error.
class Metrics {
 public:
  /// `events`: null on ranks that write none.
  explicit Metrics(std::unique_ptr<EventLog> events) : events_(std::move(events)) {}

  /// `pending` is not its own.
  [[nodiscard]] Counters counters() const;

  void started(int ranks, double seconds) const;
  /// Sealed.
  void committed(const CommitHead& commit, const CommitBytes& bytes, double blocked_s);
  /// Not sealed yet.
  void took_snapshot(const CommitHead& commit, const CommitBytes& bytes, double blocked_s) const;
  /// `after_s`: since the commit; none: it was not due then.
  void reached(const CommitHead& commit, Level level, const CommitBytes& bytes, std::optional<double> after_s);
  void failed(const CommitHead& commit, Level level, const Failure& failure);
  /// A flush that failed is tried again after so many seconds.
  void retries(const CommitHead& commit, const Failure& failure, double wait_s);
  void skipped(const CommitHead& commit);
  /// A file of it was found damaged in the background.
  void damaged(const CommitHead& commit, const Failure& failure) const;
  void retired(const CommitHead& commit);
  void opened(const CommitHead& commit, const OpenedFrom& from, double seconds);
  void checkpoint_failed(std::string_view tag, const Failure& failure);
  void finalized() const;

 private:
  void write(const Event& event) const {
    if (events_) events_->write(event);
  }
  template <class Change>
  void count(Change&& change) {
    const std::lock_guard guard(mutex_);
    change(counters_);
  }

  std::unique_ptr<EventLog> events_;
  mutable std::mutex mutex_;
  Counters counters_;
};

}  // namespace kedge::pipeline
