#include "pipeline/pipeline.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/attempt.hpp"
#include "base/text.hpp"
#include "base/units.hpp"

namespace kedge::pipeline {
namespace {

std::string nothing_of(std::string_view tag) {
  return compose(
      "the node-local stores hold no commit '{}': a newer one took its place, or none was made; wait for it before the "
      "next create, or raise store.keep",
      tag);
}

Failure no_protection() {
  return {ErrorCode::invalid_argument,
          "this run's redundancy scheme is single, so no commit can be protected; run on two nodes or more, with "
          "redundancy.scheme auto, partner, xor or rs",
          -1,
          {},
          0};
}

}  // namespace

Pipeline::Pipeline(comm::Group group, store::NodeStore& store, commits::Ledger& ledger,
                   std::unique_ptr<ProtectStage> protect, std::unique_ptr<Stage> flush, Schedule schedule, Pause& pause,
                   Clock& clock, const Log& log, Metrics& metrics, store::NodeRecords* flush_records)
    : group_(std::move(group)),
      store_(store),
      ledger_(ledger),
      outputs_(ledger),
      lost_snapshots_(ledger),
      protect_(std::move(protect)),
      flush_(std::move(flush)),
      schedule_(std::move(schedule)),
      turns_(schedule_.protect_every, schedule_.flush_every),
      pause_(pause),
      clock_(clock),
      log_(log),
      metrics_(metrics),
      flush_record_(flush_records, ledger, clock, log),
      completions_(
          ledger, [this](const Id128& commit_id) { return worker_ && worker_->is_under_way(commit_id); }, log) {
  if (schedule_.channel.mode == PipelineMode::inline_) return;
  auto channel = open_channel(group_, schedule_.channel, log_);
  if (!channel.messages) return;
  start_worker(std::move(channel));
  if (worker_) store_.spare(store::FileKind::container, schedule_.max_pending);
}

Submitted Pipeline::submit(const CommitHead& commit, const CommitCost& cost, std::optional<Level> level) {
  if (commit.is_output) outputs_.made();
  else turns_.count();
  lost_snapshots_.forget(commit.tag);
  Job job{{commit, {}}, nullptr, false, false, clock_.seconds(), cost.bytes, cost.blocked_s};
  const ToMakeUpFor failed = take_failed();
  decide(job, level, failed.flush);

  Submitted submitted = pin_container(group_, job);
  if (job.flush && !submitted.not_persistent) {
    const double begin_s = clock_.seconds();
    submitted.not_persistent = flush_->prepare(group_, job.files);
    job.prepare_s = clock_.seconds() - begin_s;
  }
  if (submitted.not_persistent) job.flush = false;
  else if (job.flush && worker_ && !commit.is_output) turns_.flushed();
  within_submit_s_ = job.prepare_s;
  if (worker_) {
    job.blocked_s += clock_.seconds() - job.submitted_s;
    note(job, submitted);
    metrics_.committed(commit, job.bytes, job.blocked_s);
    if (group_.is_root()) {
      log_.debug(compose("{} is local; the rest goes on in the background", commit.tag));
      warn(commit, submitted);
    }
    worker_->submit(std::move(job));
    if (failed.output) hand_over_owed_output();
    if (schedule_.waits) (void)wait_until_idle();
    return submitted;
  }
  const double begin_s = clock_.seconds();
  Submitted processed = process(group_, job, store::Reach::all);
  within_submit_s_ += clock_.seconds() - begin_s;
  if (submitted.not_protected) processed.not_protected = submitted.not_protected;
  if (submitted.not_persistent) processed.not_persistent = submitted.not_persistent;
  job.blocked_s += clock_.seconds() - job.submitted_s;
  note(job, processed);
  metrics_.committed(commit, job.bytes, job.blocked_s);
  if (group_.is_root()) log_outcome(job, processed);
  return processed;
}

/// COLLECTIVE, where a worker flushes. What it met one rank may know and another not yet: who knows more knows all that
/// the others do, so that the larger number counts.
Pipeline::ToMakeUpFor Pipeline::take_failed() {
  if (!worker_ || (!turns_.flushes() && !outputs_.exist())) return {};
  const std::uint64_t flush = turns_.take_flush_failed() ? 1 : 0;
  const std::uint64_t output = outputs_.take_note() ? 2 : 0;
  const std::uint64_t failed = group_.max(flush + output);
  return {(failed & 1U) != 0, (failed & 2U) != 0};
}

/// How far this commit is to be taken: as far as its turn says, but for the last of a job, for which the time is known
/// that is left; an output as far as possible.
void Pipeline::decide(Job& job, std::optional<Level> level, bool makes_up_for_flush) {
  if (job.files.commit.is_output) {
    job.protect = protects();
    job.flush = true;
    if (makes_up_for_flush) turns_.note_flush(true);  // that is for the next checkpoint
    return;
  }
  const Turns::Due due = turns_.take(makes_up_for_flush);
  job.protect = due.protect && protect_->is_possible();
  job.flush = due.flush;
  if (!level) return;
  job.flush = *level == Level::persistent;
  if (!job.flush) job.protect = *level == Level::protected_;
}

Level Pipeline::highest_level() const {
  if (turns_.flushes()) return Level::persistent;
  return protects() ? Level::protected_ : Level::local;
}

/// COLLECTIVE, on `group`, if anything is to be done. Pins the container; what cannot be done without is not done.
Submitted Pipeline::pin_container(const comm::Group& group, Job& job) {
  const CommitHead& commit = job.files.commit;
  const auto local = attempt([&] {
    job.files.container = store::Pin(store_, store::FileKind::container, group.logical_rank(), {commit.id, {}});
  });
  Submitted not_done;
  if (!job.protect && !job.flush) return not_done;
  const auto not_held = group.vote(local);
  if (!not_held) return not_done;
  if (std::exchange(job.protect, false)) not_done.not_protected = not_held;
  if (job.flush) not_done.not_persistent = not_held;
  return not_done;
}

/// COLLECTIVE, on `group`.
Submitted Pipeline::process(const comm::Group& group, Job& job, store::Reach reach) {
  Submitted processed;
  const auto since_commit_s = [&] { return clock_.seconds() - job.submitted_s; };
  if (job.protect) {
    processed.not_protected = run_timed(*protect_, patient(group, job.bytes.own), job.files, 0, reach);
    if (!processed.not_protected) processed.protected_after_s = since_commit_s();
  }
  if (reach == store::Reach::known) worker_->made_progress();
  retire(reach);
  if (!job.is_last && job.files.container) make_ready(job.files.container->size_bytes());
  if (job.flush) {
    processed.not_persistent = flush(group, job, reach, processed.flush_tries);
    const auto entry = ledger_.find(job.files.commit.id);
    // A flush may be over when a later start of the run is found to have taken over.
    if (!processed.not_persistent || (entry && entry->persistent)) processed.persistent_after_s = since_commit_s();
    const bool is_counted = reach == store::Reach::all && !job.files.commit.is_output;
    if (!processed.not_persistent && is_counted) turns_.flushed();
    retire(reach);
    if (!processed.not_persistent && reach == store::Reach::all) flush_owed_outputs();
  }
  return processed;
}

/// COLLECTIVE, on `group`. A worker tidies up when the job is done. What it stood still for the application is no cost:
/// nothing keeps it waiting when the last checkpoint is brought to its levels.
std::optional<Failure> Pipeline::run_timed(Stage& stage, const comm::Group& group, const CommitFiles& files,
                                           double prepare_s, store::Reach reach) {
  const double begin_s = clock_.seconds();
  const Pause::Seconds stood_before = pause_.stood();
  auto failure = stage.run(group, files);
  if (!failure) completions_.reached(files.commit.id, stage.reaches());
  if (!failure && reach == store::Reach::all) failure = stage.tidy(group);
  const double took_s = clock_.seconds() - begin_s - (pause_.stood() - stood_before).count();
  if (!failure) timer_.add(stage.reaches(), prepare_s + std::max(took_s, 0.0));
  return failure;
}

/// COLLECTIVE, on `channel`, in the worker's thread. Only what ends the engine ends it, too.
void Pipeline::work(const comm::Group& channel, Job& job) {
  pause_.begin();
  if (job.unsealed && !seal(channel, job)) return;
  const Submitted processed = process(channel, job, store::Reach::known);
  if (job.files.commit.is_output && processed.not_persistent) outputs_.note();
  if (job.flush && !job.files.commit.is_output) turns_.note_flush(processed.not_persistent.has_value());
  note(job, processed);
  if (channel.is_root()) log_outcome(job, processed);
  if (processed.not_persistent && processed.not_persistent->code == ErrorCode::busy) {
    throw Error(*processed.not_persistent);
  }
}

/// COLLECTIVE, on `channel`, in the worker's thread. Nobody waits for the commit any more.
void Pipeline::tidy(const comm::Group& channel) {
  pause_.begin();
  comm::throw_if(flush_->tidy(channel));
}

/// Local. The first checkpoints of a job find no file to refill: a start, and each of them, makes the next one's ready,
/// so that only the first waits for new storage. After parity, which needs its room first. Where there is no room, the
/// next create says so. Parity is not made ready: protection may fail or be off, and the next container may need the
/// space.
void Pipeline::make_ready(std::uint64_t size_bytes) {
  if (size_bytes == 0 || !store_.memory_backed()) return;
  // Files that are only needed while an older commit waits for the protection of a newer one come and go.
  const std::size_t under_way = worker_ ? schedule_.max_pending : 1;
  (void)attempt([&] {
    store_.make_ready(store::FileKind::container, size_bytes, {.idle = under_way, .all = schedule_.keep + under_way});
  });
}

std::optional<Failure> Pipeline::wait_for_room() {
  if (!worker_ || !is_full()) return failure();
  switch (schedule_.when_full) {
    case WhenFull::block: {
      const Pause::Awaited awaited(pause_);
      return worker_->wait_until_below(schedule_.max_pending).failure;
    }
    case WhenFull::skip: return worker_->failure();  // all ranks decide that together
    case WhenFull::fail: break;
  }
  return Failure{ErrorCode::no_space,
                 compose("as many commits as pipeline.max_pending permits ({}) are under way to higher levels; make "
                         "checkpoints less often, or set pipeline.when_full to block or skip",
                         worker_->pending()),
                 -1,
                 {},
                 0};
}

void Pipeline::skip_flushes() {
  const Pause::Awaited awaited(pause_);
  const std::uint64_t begun = group_.max(worker_->hold());
  const std::vector<CommitHead> skipped = worker_->skip_flushes(begun);
  if (!skipped.empty()) turns_.make_flush_due();
  skipped_ += skipped.size();
  for (const CommitHead& commit : skipped) {
    const Failure failure{ErrorCode::not_found,
                          compose("the flush of {} was skipped: checkpoints are made faster than they can be flushed "
                                  "(pipeline.when_full = skip; {} so far)",
                                  commit.tag, skipped_),
                          -1,
                          {},
                          0};
    if (commit.is_output) outputs_.note();
    completions_.failed(commit.id, Level::persistent, failure);
    metrics_.skipped(commit);
    if (group_.is_root()) log_.warning(failure.message);
  }
  group_.together([&] { comm::throw_if(worker_->wait_until_below(schedule_.max_pending).failure); });
}

Waited Pipeline::wait_until_idle(Rest rest, Deadline deadline) {
  const Pause::Awaited awaited(pause_);
  return worker_ ? worker_->wait_until_idle(rest, deadline) : Waited{};
}

Waited Pipeline::wait_for(std::string_view tag, Level level, Deadline deadline) {
  const auto commit = worker_ ? ledger_.newest_of(tag) : std::nullopt;
  if (!commit || level <= Level::snapshot) return {};
  const Pause::Awaited awaited(pause_);
  const Id128 commit_id = commit->id;
  const auto is_reached = [&] { return ledger_.has_reached(commit_id, level); };
  return worker_->wait_for(commit_id, is_reached, deadline);
}

void Pipeline::on_complete(std::string_view tag, Level level, Completions::Callback callback) {
  std::optional<CommitHead> commit = ledger_.newest_of(tag);
  if (const auto lost = lost_snapshots_.find(tag)) {
    commit = lost->commit;
    completions_.failed(commit->id, level, lost->failure);
  }
  if (!commit) {
    throw Error(ErrorCode::not_found,
                ledger_.is_surveyed()
                    ? nothing_of(tag)
                    : compose("this start has not looked at the stores yet, so it knows no commit '{}': call open, "
                              "create or wait first",
                              tag));
  }
  // What becomes persistent is protected, too.
  const bool can_come = turns_.flushes() || protect_->is_possible() || level != Level::protected_;
  if (!can_come) completions_.failed(commit->id, level, no_protection());
  completions_.expect(*commit, level, std::move(callback));
}

void Pipeline::require(std::string_view tag, Level level) {
  // One rank's worker may have retired it, and another's not yet.
  enum Found : std::uint64_t { reached, lower, nothing };
  throw_if_not_sealed(tag);
  // A snapshot may become an entry meanwhile, and an entry may leave.
  const auto snapshot = ledger_.snapshot();
  std::optional<commits::Entry> entry = ledger_.find(tag);
  const Level has = snapshot && snapshot->tag == tag ? Level::snapshot : entry ? entry->level() : Level::none;
  const std::uint64_t found = group_.max(has == Level::none ? nothing : has < level ? lower : reached);
  if (found == nothing) {
    throw_if_not_sealed(tag);  // since a moment ago
    throw Error(ErrorCode::not_found, nothing_of(tag));
  }
  if (found == reached) return;
  if (level == Level::protected_ && !protect_->is_possible()) throw Error(no_protection());
  group_.together([&] { comm::throw_if(wait_until_idle().failure); });
  if (worker_) {  // which may have done it meanwhile
    throw_if_not_sealed(tag);
    if (schedule_.snapshots && group_.any(!entry || has == Level::snapshot)) {
      entry = ledger_.find(tag);
      if (!entry) throw Error(ErrorCode::not_found, nothing_of(tag));
    }
    if (group_.all(ledger_.has_reached(entry->commit.id, level))) return;
  }
  auto failure = run(group_, level == Level::persistent ? *flush_ : *protect_, entry->commit, store::Reach::all);
  if (failure && failure->code == ErrorCode::not_found && level == Level::persistent) {
    failure->message += "; open this commit first, so that every rank has its container";
  }
  comm::throw_if(failure);
  if (ledger_.must_survey()) return;  // nothing was opened yet: an older one may be
  retire(store::Reach::all);
}

/// COLLECTIVE, on `group`, while nothing else is under way. One stage, now.
std::optional<Failure> Pipeline::run(const comm::Group& group, Stage& stage, const CommitHead& commit,
                                     store::Reach reach) {
  const bool in_background = reach == store::Reach::known;
  std::optional<Pause::Awaited> awaited;
  if (!in_background) awaited.emplace(pause_);
  CommitFiles files{commit, {}};
  auto failure = group.try_together([&] {
    files.container = store::Pin(store_, store::FileKind::container, group.logical_rank(), {commit.id, {}});
  });
  const double begin_s = clock_.seconds();
  if (!failure) failure = stage.prepare(group, files);
  if (!failure) {
    const comm::Group waiting = in_background ? patient(group, files.container->size_bytes()) : group;
    failure = run_timed(stage, waiting, files, clock_.seconds() - begin_s, reach);
  }
  if (!failure && stage.reaches() == Level::persistent && !commit.is_output) turns_.flushed();
  const auto entry = ledger_.find(commit.id);
  // A flush may be over when a later start of the run is found to have taken over.
  const bool is_reached = !failure || (stage.reaches() == Level::persistent && entry && entry->persistent);
  if (!is_reached) record(commit, stage.reaches(), *failure, 1);
  else record(commit, stage.reaches(), {files.container->size_bytes(), 0}, std::nullopt);
  return failure;
}

}  // namespace kedge::pipeline
