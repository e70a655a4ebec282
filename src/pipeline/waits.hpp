// The application's waits for the worker.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "comm/group.hpp"
#include "commits/ledger.hpp"
#include "kedge/options.hpp"
#include "pipeline/background_pause.hpp"
#include "pipeline/executor.hpp"
#include "pipeline/snapshots.hpp"

namespace kedge::pipeline {

/// Whether a wait includes deferred work.
enum class DeferredWorkPolicy : std::uint8_t {
  wait,    ///< wait for it
  drop,    ///< drop its optional parts
  ignore,  ///< let it continue
};

struct WaitSettings {
  std::size_t max_pending = 1;  ///< pending commits, including the one being written
  WhenFull when_full = WhenFull::block;
  bool after_each_submit = false;  ///< for tests: wait_after_submit() waits until idle
};

/// Local unless a call says otherwise. Without a worker nothing waits. A failure that ended the worker is returned, for
/// the vote at the start of the next call.
class Waits {
 public:
  /// All that is referred to must outlive it.
  Waits(comm::Group group, const commits::Ledger& ledger, Executor& executor, const Snapshots& snapshots,
        BackgroundPause& pause, WaitSettings settings);

  /// Waits until another commit may be written, unless pipeline.when_full says otherwise. Returns why none may.
  [[nodiscard]] std::optional<Failure> wait_for_space();
  /// Waits until no commit is a snapshot and its manifest is made. Returns why the worker has ended, if it has.
  [[nodiscard]] std::optional<Failure> wait_until_sealed();
  /// Waits until nothing is pending; the ledger is then equal on all ranks, unless `rest` leaves work running.
  [[nodiscard]] WaitResult wait_until_idle(DeferredWorkPolicy rest = DeferredWorkPolicy::wait,
                                           Deadline deadline = Deadline::never());
  /// Waits until the newest commit of this tag has the level, or is not pending.
  [[nodiscard]] WaitResult wait_for(std::string_view tag, Level level, Deadline deadline);
  /// COLLECTIVE. Waits until nothing is pending, and drops optional deferred work. Throws the worker's failure.
  void quiesce();
  /// Called after a commit was submitted; waits if WaitSettings::after_each_submit says so.
  void wait_after_submit();

  /// Returns the number of pending commits. Thread-safe.
  [[nodiscard]] std::size_t pending_count() const;
  /// Whether there is a worker, no commit is pending, and no opened one is to be protected.
  [[nodiscard]] bool is_idle() const { return is_in_background() && executor_.backlog().is_idle(); }
  [[nodiscard]] bool is_in_background() const noexcept { return executor_.is_in_background(); }
  /// Returns why the worker has ended, if it has.
  [[nodiscard]] std::optional<Failure> failure() const { return executor_.backlog().failure; }

 private:
  comm::Group group_;
  const commits::Ledger& ledger_;
  Executor& executor_;
  const Snapshots& snapshots_;
  BackgroundPause& pause_;
  WaitSettings settings_;
};

}  // namespace kedge::pipeline
