// The application's waits for the worker.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/log.hpp"
#include "comm/group.hpp"
#include "commits/ledger.hpp"
#include "kedge/options.hpp"
#include "pipeline/executor.hpp"
#include "pipeline/pause.hpp"
#include "pipeline/snapshots.hpp"

namespace kedge::pipeline {

/// What becomes of the work after an open when the application waits for the worker.
enum class Rest : std::uint8_t {
  awaited,   ///< it is waited for
  given_up,  ///< it is given up, as far as it is only worth something
  ignored,   ///< it goes on
};

struct WaitSettings {
  std::size_t max_pending = 1;  ///< commits under way, with the one being written
  WhenFull when_full = WhenFull::block;
  bool after_each_submit = false;  ///< submitted() returns when nothing is under way: for tests
};

/// Local, unless a call says otherwise. Where all is done within calls there is nothing to wait for. What a worker met
/// that ends the engine is to be brought to the call that all ranks begin with.
class Waits {
 public:
  /// All that is referred to must outlive it.
  Waits(comm::Group group, const commits::Ledger& ledger, Executor& executor, const Snapshots& snapshots, Pause& pause,
        WaitSettings settings);

  /// Returns when another commit may be written, unless pipeline.when_full says otherwise. Why none may.
  [[nodiscard]] std::optional<Failure> wait_for_room();
  /// Returns when no commit is a snapshot any more, and its manifest is made. Why the worker has ended, if it has.
  [[nodiscard]] std::optional<Failure> wait_until_sealed();
  /// Returns when nothing is under way: what is known of commits is then the same on every rank, unless `rest` leaves
  /// something.
  [[nodiscard]] Waited wait_until_idle(Rest rest = Rest::awaited, Deadline deadline = Deadline::never());
  /// Returns when the newest commit of this tag has the level, or is not under way.
  [[nodiscard]] Waited wait_for(std::string_view tag, Level level, Deadline deadline);
  /// COLLECTIVE. Returns when nothing is under way; what was left to do after an open is given up, as far as that costs
  /// no protection. Throws why the worker has ended.
  void quiesce();
  /// A commit was submitted.
  void submitted();

  /// Commits under way; from any thread.
  [[nodiscard]] std::size_t pending() const;
  /// Whether there is a worker, and no commit is under way or still to be protected after it was opened.
  [[nodiscard]] bool is_idle() const { return is_in_background() && executor_.backlog().is_idle(); }
  /// Whether there is a worker.
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
