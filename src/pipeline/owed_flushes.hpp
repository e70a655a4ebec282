// Flushes that are left for later: of outputs whose flush failed or that a start before this one left in the stores,
// and of the newest checkpoint when the job ends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "comm/group.hpp"
#include "commits/ledger.hpp"
#include "kedge/error.hpp"
#include "pipeline/executor.hpp"
#include "pipeline/owed_outputs.hpp"
#include "pipeline/stage_list.hpp"
#include "pipeline/stage_runner.hpp"
#include "pipeline/waits.hpp"

namespace kedge::pipeline {

/// COLLECTIVE, unless a call says that it is local; throws what ends communication.
class OwedFlushes {
 public:
  /// `at_end`: whether the newest checkpoint is flushed when the job ends, if any is flushed by itself. All that is
  /// referred to must outlive it.
  OwedFlushes(comm::Group group, commits::Ledger& ledger, OwedOutputs& outputs, StageList& stages, StageRunner& runner,
              Executor& executor, Waits& waits, bool at_end);

  /// Flushes the outputs that are owed, after a flush that succeeded. Stops at a failure, unless it is that some rank
  /// has no container of the output.
  void flush_outputs();
  /// Hands the worker one of them: one with each commit, so that it has other things done too while the prefix is out
  /// of order.
  void hand_over_output();

  /// What became of the end, the same on all ranks.
  enum class Finished : std::uint8_t {
    done,         ///< the newest commit is where it belongs
    not_flushed,  ///< it could not be flushed: that was logged
    timed_out     ///< not in time: something is under way
  };
  /// The job ends: flushes what is owed; within this time, if it is given and a worker does it. False on all ranks if
  /// there was not time for all.
  [[nodiscard]] bool flush_all(std::optional<Deadline> deadline);
  /// Whether everything is where it belongs.
  [[nodiscard]] bool is_none() const { return owed().empty(); }

 private:
  [[nodiscard]] std::vector<CommitHead> unflushed_outputs() const;
  [[nodiscard]] std::vector<CommitHead> owed() const;
  void flush(const std::vector<CommitHead>& owed);
  [[nodiscard]] std::optional<Failure> hand_over(const CommitHead& commit);

  comm::Group group_;
  commits::Ledger& ledger_;
  OwedOutputs& outputs_;
  StageList& stages_;
  StageRunner& runner_;
  Executor& executor_;
  Waits& waits_;
  bool at_end_;
  std::size_t flush_;  ///< the number of that stage
};

}  // namespace kedge::pipeline
