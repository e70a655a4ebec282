#include "pipeline/flush_record.hpp"

#include "base/attempt.hpp"

namespace kedge::pipeline {

void FlushRecord::on_stage_failed(const CommitProgress& progress, const StageProgress& stage) {
  const bool is_flush = stage.level == Level::persistent && stage.state != StageState::reached;
  if (records_ == nullptr || !is_flush) return;
  const CommitHead& commit = progress.commit;
  const std::lock_guard guard(mutex_);
  load_previous();
  if (there_ && there_->generation > commit.generation) return;  // the application waited for an older commit
  const store::FailedFlush now{commit.id,        commit.generation, commit.tag,
                               clock_.wall_ns(), stage.tries,       to_string(*stage.failure)};
  const auto not_written = attempt([&] { records_->record_failed_flush(now); });
  if (not_written) log_.debug("could not record the failed flush in the store: " + to_string(*not_written));
  else there_ = now;
}

void FlushRecord::on_level_reached(const CommitProgress& progress, const StageProgress& stage) {
  if (records_ == nullptr || stage.level != Level::persistent) return;
  const std::lock_guard guard(mutex_);
  load_previous();
  if (there_ && there_->generation <= progress.commit.generation) remove();
}

/// The commit of an earlier start's record may have left the stores before this start.
void FlushRecord::on_retired(std::span<const CommitHead> /*commits*/) {
  if (records_ == nullptr) return;
  const std::lock_guard guard(mutex_);
  load_previous();
  if (there_ && !ledger_.known().find(there_->commit_id)) remove();
}

void FlushRecord::load_previous() {
  if (is_loaded_) return;
  is_loaded_ = true;
  (void)attempt([&] { there_ = records_->failed_flush(); });
}

void FlushRecord::remove() {
  there_.reset();
  const auto failure = attempt([&] { records_->remove_failed_flush(); });
  if (failure) log_.debug("the record of a flush that failed could not be removed: " + to_string(*failure));
}

}  // namespace kedge::pipeline
