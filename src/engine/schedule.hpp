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

  /// From now on a checkpoint is due, until one was committed.
  void make_due() { is_due_anyway_ = true; }
  /// One call of need_checkpoint(): whether a checkpoint is due now.
  [[nodiscard]] bool is_due(double now_s);
  /// A checkpoint was committed, and the application waited this long for it.
  void committed(double blocked_s, double now_s);
  /// A checkpoint failed after the application had waited this long: the next is expected to cost as much as this one
  /// or as the last, whichever is more.
  void failed(double blocked_s, double now_s);

 private:
  [[nodiscard]] bool is_due_by_time(double now_s) const;

  Options::Schedule options_;
  std::uint64_t calls_ = 0;
  bool is_due_anyway_ = false;
  double last_s_;          ///< the end of the last checkpoint, or the start
  double blocked_s_ = -1;  ///< by the last checkpoint; below 0: there was none yet
};

}  // namespace kedge::engine
