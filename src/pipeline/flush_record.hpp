// Keeps the record of a flush that failed in step with what becomes of its commit.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "commits/ledger.hpp"
#include "pipeline/progress.hpp"
#include "store/failed_flush.hpp"
#include "store/store_records.hpp"

namespace kedge::pipeline {

/// Rank 0's; elsewhere it does nothing. Local, may be called from any thread. A record that cannot be written or
/// removed is logged at debug level: it only informs.
class FlushRecord final : public CommitObserver {
 public:
  /// `records` is null on the other ranks; all that is referred to must outlive it.
  FlushRecord(store::StoreRecords* records, const commits::Ledger& ledger, Clock& clock, const Log& log)
      : records_(records), ledger_(ledger), clock_(clock), log_(log) {}

  void failed(const CommitProgress& progress, const StageProgress& stage) override;
  /// What failed before it does not matter any more.
  void reached(const CommitProgress& progress, const StageProgress& stage) override;
  void retired(std::span<const CommitHead> commits) override;

 private:
  void look();
  void remove();

  store::StoreRecords* records_;
  const commits::Ledger& ledger_;
  Clock& clock_;
  const Log& log_;
  std::mutex mutex_;
  bool looked_ = false;  ///< what an earlier start left is known
  std::optional<store::FailedFlush> there_;
};

}  // namespace kedge::pipeline
