// The end of an engine by the application's own call: in order, or in time.
#include <algorithm>
#include <chrono>
#include <optional>
#include <string>

#include "base/attempt.hpp"
#include "base/text.hpp"
#include "engine/close_store.hpp"
#include "engine/engine_impl.hpp"
#include "start/continuation.hpp"

namespace kedge::engine {
namespace {

/// Joins two failures into one; the loss of the newest checkpoint comes first.
std::optional<Failure> both(std::optional<Failure> lost, const std::optional<Failure>& failure) {
  if (!lost) return failure;
  if (failure) lost->message += "; also: " + to_string(*failure);
  return lost;
}

}  // namespace

void EngineImpl::finalize(std::optional<std::chrono::duration<double>> to_meet) {
  const std::optional<Failure> ended = pipeline_.waits().wait_until_idle().failure;
  release_device();  // the application may reset its GPU afterwards, also if this fails
  const auto max_wait = std::min(to_meet.value_or(group_.timeout()), group_.timeout());
  comm::begin_call(group_.with_timeout(max_wait), comm::Call::finalize, 0, ended);
  const std::optional<Failure> failure = end_phase();
  const std::optional<Failure> lost = pipeline_.snapshots().unreported_failure();
  (void)pipeline_.finish_job();
  leave(lost);
  comm::throw_if(both(lost, failure));
}

bool EngineImpl::finalize_for(std::chrono::duration<double> at_most) {
  const Deadline deadline = Deadline::after(at_most);
  const pipeline::WaitResult waited = pipeline_.waits().wait_until_idle(pipeline::DeferredWorkPolicy::drop, deadline);
  if (!pipeline_.snapshots().is_sealing()) release_device();
  const bool in_time =
      comm::begin_call(group_, comm::Call::finalize_for, 0, waited.failure, waited.is_in_time ? 0 : 1) == 0;
  const std::optional<Failure> failure = end_phase();
  using Finished = pipeline::DeferredFlushes::FinishResult;
  const std::optional<Failure> lost = in_time ? pipeline_.snapshots().unreported_failure() : std::nullopt;
  const Finished finished = in_time ? pipeline_.finish_job(deadline) : Finished::timed_out;
  if (finished == Finished::timed_out) report_timeout(at_most);
  else leave(lost);
  if (failure) throw Error(*both(lost, failure));
  return finished == Finished::done && !lost;
}

/// COLLECTIVE. The failure of a checkpoint that was open, the same on all ranks: the end goes on.
std::optional<Failure> EngineImpl::end_phase() {
  if (lifecycle_.phase() == Phase::writing) writer_.abandon();
  if (lifecycle_.phase() != Phase::reading) return std::nullopt;
  try {
    reader_.close();
  } catch (const Error& error) {
    if (comm::ends_communication(error.code())) throw;
    return error.failure();
  }
  return std::nullopt;
}

/// COLLECTIVE. `lost`: why the newest checkpoint is; then all files are kept.
void EngineImpl::leave(const std::optional<Failure>& lost) {
  try {
    close_store({.group = group_,
                 .started = started_,
                 .ledger = ledger_,
                 .markers = markers_,
                 .on_exit = lost ? OnExit::keep : options_.store.on_exit,
                 .persistent = options_.persistent,
                 .log = log_});
  } catch (const Error& error) {
    if (!lost || comm::ends_communication(error.code())) throw;
    throw Error(*both(lost, error.failure()));
  }
  if (!lost && !job_end_.is_asked_to_end()) start::mark_finished(started_.start_id);
  end_calls();
}

/// Local. Ends the calls that the application may make.
void EngineImpl::end_calls() {
  lifecycle_.move_to(Phase::finished);
  signal_ = {};
  job_end_.restore_signals();
  metrics_.record_finalize();
}

/// Local. Nothing is removed, and no lock is released before the engine is destroyed: messages may still be under way.
void EngineImpl::report_timeout(std::chrono::duration<double> after) {
  if (group_.is_root()) {
    log_.warning(describe_timeout(after));
    warn_of_unflushed_outputs(ledger_, how_to_flush(started_.prefix_path, started_.run), log_);
  }
  const pipeline::StopResult stopped = stop_worker();
  const bool was_idle = stopped == pipeline::StopResult::idle;
  pipeline_.completions().deliver_all();  // nothing becomes of commits any more
  end_calls();
  if (!was_idle) lifecycle_.die("without waiting for all commits");
}

/// Local. Message for a finalize that timed out: what is left of the job, and what to do with it.
std::string EngineImpl::describe_timeout(std::chrono::duration<double> after) const {
  const std::string when = after.count() > 0 ? compose("after {}", human_seconds(after.count())) : "at once";
  const auto newest = ledger_.known().newest_checkpoint();
  if (const auto snapshot = ledger_.known().snapshot) {
    return compose(
        "finalize stopped waiting {}, before {} was written to the node-local stores: unless the next start finds it "
        "complete, {} is the newest checkpoint; give finalize more time, or call wait(tag, local) first",
        when, snapshot->tag, newest ? newest->commit.tag : Tag("none"));
  }
  if (newest && newest->persistent) {
    return compose(
        "finalize stopped waiting {}: {} is persistent, and only deferred work is left. The node-local files are kept; "
        "the next start does the rest",
        when, newest->commit.tag);
  }
  if (!newest && !ledger_.known().commits_exist) {
    return compose("finalize stopped waiting {} with work left; the node-local files are kept", when);
  }
  return compose("finalize stopped waiting {} with work left: {} is only {}; the node-local files are kept. {}", when,
                 newest ? newest->commit.tag : Tag("the newest checkpoint"),
                 to_string(newest ? newest->level() : Level::none), how_to_flush(started_.prefix_path, started_.run));
}

}  // namespace kedge::engine
