// The application's waits for the worker.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "comm/group.hpp"
#include "commits/ledger.hpp"
#include "kedge/options.hpp"
#include "pipeline/executor.hpp"
#include "pipeline/pause.hpp"
#include "pipeline/snapshots.hpp"

namespace kedge::pipeline {

/// How a wait treats deferred work.
enum class Rest : std::uint8_t {
  awaited,  ///< waits for it
  dropped,  ///< drops its optional parts
  ignored,  ///< lets it continue
};

struct WaitSettings {
  std::size_t max_pending = 1;  ///< pending commits, including the one being written
  WhenFull when_full = WhenFull::block;
  bool after_each_submit = false;  ///< for tests: submitted() waits until idle
};

/// Local unless a call says otherwise. Without a worker nothing waits. A failure that ended the worker is returned, for
/// the vote at the start of the next call.
class Waits {
 public:
  /// All that is referred to must outlive it.
  Waits(comm::Group group, const commits::Ledger& ledger, Executor& executor, const Snapshots& snapshots, Pause& pause,
        WaitSettings settings);

  /// Waits until another commit may be written, unless pipeline.when_full says otherwise. Returns why none may.
  [[nodiscard]] std::optional<Failure> wait_for_room();
  /// Waits until no commit is a snapshot and its manifest is made. Returns why the worker has ended, if it has.
  [[nodiscard]] std::optional<Failure> wait_until_sealed();
  /// Waits until nothing is pending; the ledger is then equal on all ranks, unless `rest` leaves work running.
  [[nodiscard]] Waited wait_until_idle(Rest rest = Rest::awaited, Deadline deadline = Deadline::never());
  /// Waits until the newest commit of this tag has the level, or is not pending.
  [[nodiscard]] Waited wait_for(std::string_view tag, Level level, Deadline deadline);
  /// COLLECTIVE. Waits until nothing is pending, and drops optional deferred work. Throws the worker's failure.
  void quiesce();
  /// A commit was submitted.
  void submitted();

  /// Commits under way; from any thread.
  [[nodiscard]] std::size_t pending() const;
  /// Whether there is a worker, no commit is pending, and no opened one is to be protected.
  [[nodiscard]] bool is_idle() const { return is_in_background() && executor_.backlog().is_idle(); }
  [[nodiscard]] bool is_in_background() const noexcept { return executor_.is_in_background(); }
  /// Why the worker has ended, if it has.
  [[nodiscard]] std::optional<Failure> failure() const { return executor_.backlog().failure; }

 private:
  comm::Group group_;
  const commits::Ledger& ledger_;
  Executor& executor_;
  const Snapshots& snapshots_;
  Pause& pause_;
  WaitSettings settings_;
};

}  // namespace kedge::pipeline
