// When the next checkpoint is due: by calls, or by what checkpoints cost.
#pragma once

#include <cstdint>

#include "kedge/options.hpp"

namespace kedge::engine {

/// Pure but for its own counts. Only rank 0's answer counts; the others keep their counts in step.
class CheckpointSchedule {
 public:
  /// `now_s` is when the engine started; seconds of a clock that does not go back.
  CheckpointSchedule(const Options::Schedule& options, double now_s) : options_(options), last_s_(now_s) {}

  /// One call of need_checkpoint(): whether a checkpoint is due now.
  [[nodiscard]] bool is_due(double now_s);
  /// A checkpoint was committed, and the application waited this long for it.
  void committed(double blocked_s, double now_s);
  /// A checkpoint failed after the application had waited this long for it: the next may fail as late as this or as
  /// cost as much as the last one.
  void failed(double blocked_s, double now_s);

 private:
  [[nodiscard]] bool is_due_by_time(double now_s) const;

  Options::Schedule options_;
  std::uint64_t calls_ = 0;
  double last_s_;          ///< the end of the last checkpoint, or the start
  double blocked_s_ = -1;  ///< by the last checkpoint; below 0: there was none yet
};

}  // namespace kedge::engine
