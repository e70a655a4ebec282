#include "pipeline/flush_record.hpp"

#include "base/attempt.hpp"

namespace kedge::pipeline {

void FlushRecord::on_stage_failed(const CommitProgress& progress, const StageProgress& stage) {
  const bool is_flush = stage.level == Level::persistent && stage.state != StageState::reached;
  if (records_ == nullptr || !is_flush) return;
  const CommitHead& commit = progress.commit;
  const std::lock_guard guard(mutex_);
  load_previous();
  if (recorded_failure_ && recorded_failure_->generation > commit.generation)
    return;  // the application waited for an older commit
  const store::FailedFlush now{commit.id,        commit.generation, commit.tag,
                               clock_.wall_ns(), stage.tries,       to_string(*stage.failure)};
  const auto not_written = attempt([&] { records_->record_failed_flush(now); });
  if (not_written) log_.debug("could not record the failed flush in the store: " + to_string(*not_written));
  else recorded_failure_ = now;
}

void FlushRecord::on_level_reached(const CommitProgress& progress, const StageProgress& stage) {
  if (records_ == nullptr || stage.level != Level::persistent) return;
  const std::lock_guard guard(mutex_);
  load_previous();
  if (recorded_failure_ && recorded_failure_->generation <= progress.commit.generation) remove_record();
}

/// The commit of an earlier start's record may have left the stores before this start.
void FlushRecord::on_retired(std::span<const CommitHead> /*commits*/) {
  if (records_ == nullptr) return;
  const std::lock_guard guard(mutex_);
  load_previous();
  if (recorded_failure_ && !ledger_.known().find(recorded_failure_->commit_id)) remove_record();
}

void FlushRecord::load_previous() {
  if (is_loaded_) return;
  is_loaded_ = true;
  (void)attempt([&] { recorded_failure_ = records_->failed_flush(); });
}

void FlushRecord::remove_record() {
  recorded_failure_.reset();
  const auto failure = attempt([&] { records_->remove_failed_flush(); });
  if (failure) log_.debug("the record of a flush that failed could not be removed: " + to_string(*failure));
}

}  // namespace kedge::pipeline
