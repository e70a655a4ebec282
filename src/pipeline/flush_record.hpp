// Keeps the record of a failed flush up to date.
#pragma once

#include <mutex>
#include <optional>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "commits/ledger.hpp"
#include "pipeline/progress.hpp"
#include "store/failed_flush.hpp"
#include "store/store_record_files.hpp"

namespace kedge::pipeline {

/// Local, thread-safe; active on rank 0 only. If the record cannot be written or removed, that is logged at debug
/// level, because it only informs.
class FlushRecord final : public CommitObserver {
 public:
  /// `records` is null except on rank 0. The referenced objects must outlive it.
  FlushRecord(store::StoreRecordFiles* records, const commits::Ledger& ledger, Clock& clock, const Log& log)
      : records_(records), ledger_(ledger), clock_(clock), log_(log) {}

  void on_stage_failed(const CommitProgress& progress, const StageProgress& stage) override;
  /// Removes the record of this commit's or an older one's failure.
  void on_level_reached(const CommitProgress& progress, const StageProgress& stage) override;
  void on_retired(std::span<const CommitHead> commits) override;

 private:
  void load_previous();
  void remove_record();

  store::StoreRecordFiles* records_;
  const commits::Ledger& ledger_;
  Clock& clock_;
  const Log& log_;
  std::mutex mutex_;
  bool is_loaded_ = false;  ///< the record of an earlier start was read
  std::optional<store::FailedFlush> recorded_failure_;
};

}  // namespace kedge::pipeline
