#include "engine/engine_impl.hpp"

#include "base/attempt.hpp"
#include "base/hash.hpp"
#include "base/keep_forever.hpp"
#include "base/text.hpp"
#include "commits/commit_selection.hpp"
#include "persist/prefix_retention.hpp"
#include "start/continuation.hpp"

namespace kedge::engine {

void EngineImpl::create(std::string_view tag, const Attributes& attributes, Expected expected) {
  Clock& clock = *environment_.clock;
  const double begun_at = clock.seconds();
  try {
    expected.is_last = job_end_.is_last_due() && !expected.is_output;
    expected.may_be_snapshot = job_end_.permits_snapshot();
    writer_.create(tag, attributes, expected);
    create_begun_s_ = begun_at;
  } catch (const Error& error) {
    const bool was_begun = error.code() != ErrorCode::invalid_argument && error.code() != ErrorCode::bad_state;
    if (was_begun) {
      if (!expected.is_output) schedule_.failed(clock.seconds() - begun_at, clock.seconds());
      metrics_.record_failed_checkpoint(tag, error.failure());
    }
    throw;
  }
}

void EngineImpl::commit() {
  Clock& clock = *environment_.clock;
  const double begun_at = clock.seconds();
  const double before_s = writer_.blocked_s();
  const Tag tag = writer_.tag();
  const bool is_output = writer_.is_output();
  try {
    if (is_output) return (void)writer_.commit();  // says nothing of when checkpoints are due
    const Writer::Committed committed = writer_.commit(job_end_.level());
    const double now_s = clock.seconds();
    schedule_.committed(committed.blocked_s, now_s);
    // The worker measures how long a snapshot takes until it is sealed.
    const double local_s = now_s - create_begun_s_ - committed.in_stages_s;
    job_end_.committed(committed.is_sealed ? std::optional(local_s) : std::nullopt);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::bad_state) {
      if (!is_output) schedule_.failed(before_s + clock.seconds() - begun_at, clock.seconds());
      metrics_.record_failed_checkpoint(tag, error.failure());
    }
    throw;
  }
}

/// A child of a fork may have been made while a lock of what is asked was held.
void EngineImpl::require_own_process() const {
  if (!is_own_process()) comm::throw_if(lifecycle_.ended());
}

Level EngineImpl::level(std::string_view tag) const {
  require_own_process();
  return ledger_.known().level(tag);
}

Counters EngineImpl::counters() const {
  require_own_process();
  Counters counters = metrics_.counters();
  counters.pending = pipeline_.waits().pending_count();
  return counters;
}

bool EngineImpl::end() {
  if (!is_own_process()) return false;  // a child of a fork: the thread, its locks and the run are the parent's
  mark_orderly_end();
  const pipeline::StopResult stopped = stop_worker();
  if (stopped == pipeline::StopResult::interrupted) {
    lifecycle_.die("it was destroyed while a commit was pending");
  }
  return stopped != pipeline::StopResult::not_ended;
}

/// Leaves after a timeout, too. Not after an orderly end: then nobody makes another call.
void EngineImpl::leave_by_error(std::string_view why) noexcept {
  has_failed_ = true;
  if (why.empty() || !is_own_process() || lifecycle_.phase() == Phase::finished) return;
  constexpr std::size_t kReasonBytes = 700;  // what is sent has 1 KiB, and the advice comes after it
  (void)attempt([&] {
    group_.communicator().depart(
        compose("rank {} has left its engine ({}); see that rank's own messages, and start the job again",
                group_.rank(), truncate_utf8(why, kReasonBytes)));
  });
}

/// A program that goes on without an error has done what it wanted with this engine, also where it does not finalize
/// it; one that was thrown out of its work may make another to go on with it.
void EngineImpl::mark_orderly_end() const {
  const bool unwinds = std::uncaught_exceptions() != exceptions_;
  if (unwinds || has_failed_ || lifecycle_.is_dead() || lifecycle_.phase() == Phase::finished) return;
  (void)attempt([&] { start::mark_finished(started_.start_id); });
}

/// Local. Within a bound. What is kept for messages need not stay page-locked; a worker that copies a snapshot is not
/// waited for by way of its buffers, as a device may hang.
pipeline::StopResult EngineImpl::stop_worker() {
  const bool is_sealing = pipeline_.snapshots().is_sealing();
  if (!is_sealing) release_device();
  pause_.end_pauses();
  const pipeline::StopResult stopped = pipeline_.stop(Deadline::after(kEndTimeout));
  if (is_sealing && stopped != pipeline::StopResult::not_ended) release_device();
  return stopped;
}

/// Local. Releases memory on devices, and memory pinned for them.
void EngineImpl::release_device() {
  staging_.release();
  copies_->release();
}

EngineImpl::~EngineImpl() {
  if (lifecycle_.is_dead()) keep_forever(std::move(started_.node.store));
}

std::optional<Tag> EngineImpl::open(const Selection& selection, Newer newer, recovery::Reading reading) {
  if (options_.open.verify == Verify::loaded) reading = recovery::Reading::in_load;
  auto tag = call([&] { return reader_.open(commits::parse_selection(selection), newer, reading); });
  // Only the next checkpoint of this run is protected and flushed by these ranks.
  if (tag && reader_.is_of_other_ranks() && !reader_.info().is_output) schedule_.make_due();
  return tag;
}

bool EngineImpl::need_checkpoint() { return job_end_.need_checkpoint(schedule_.is_due(environment_.clock->seconds())); }

/// COLLECTIVE. In a start that has opened nothing the stores may hold what is waited for. The next create, or open,
/// looks again: here nothing is made room for.
void EngineImpl::check_stores() {
  if (ledger_.known().is_surveyed()) return;
  pipeline_.waits().quiesce();
  recreation_.run();
  recovery_.survey_only();
  ledger_.require_survey();
}

void EngineImpl::wait(std::string_view tag, Level level) {
  std::optional<Failure> local = lifecycle_.check_phase(comm::Call::wait, {Phase::idle, Phase::reading});
  if (!local) local = commits::check_tag(tag);
  if (!local) local = pipeline_.waits().wait_for(tag, level, Deadline::never()).failure;
  comm::begin_call(group_, comm::Call::wait, fnv1a(tag) ^ static_cast<std::uint64_t>(level), local);
  check_stores();
  pipeline_.require_level(tag, level);
}

bool EngineImpl::wait_for(std::string_view tag, Level level, std::chrono::duration<double> at_most) {
  std::optional<Failure> local = lifecycle_.check_phase(comm::Call::wait_for, {Phase::idle, Phase::reading});
  if (!local) local = commits::check_tag(tag);
  pipeline::WaitResult waited;
  if (!local) {
    waited = pipeline_.waits().wait_for(tag, level, Deadline::after(at_most));
    local = waited.failure;
  }
  const std::uint64_t gave_up = waited.is_in_time ? 0 : 1;
  if (comm::begin_call(group_, comm::Call::wait_for, fnv1a(tag) ^ static_cast<std::uint64_t>(level), local, gave_up) !=
      0)
    return false;
  check_stores();
  pipeline_.require_level(tag, level);
  return true;
}

void EngineImpl::pin(std::string_view tag, bool pinned) {
  std::optional<Failure> local = lifecycle_.check_phase(comm::Call::pin, {Phase::idle, Phase::reading});
  if (!local) local = commits::check_tag(tag);
  if (!local) local = pipeline_.waits().wait_until_idle(pipeline::DeferredWorkPolicy::ignore).failure;
  comm::begin_call(group_, comm::Call::pin, fnv1a(tag) ^ (pinned ? 1U : 0U), local);
  ledger_.mark_prefix_changed();
  group_.run_on_all_ranks([&] {
    const start::PrefixHandles& prefix = started_.prefix;
    if (prefix.markers) persist::set_pinned(prefix.storage, *prefix.markers, started_.run.id, Tag(tag), pinned);
  });
}

}  // namespace kedge::engine
