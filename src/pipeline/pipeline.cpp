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
  return compose("the node-local stores hold no commit '{}'; wait for a tag that was committed or opened", tag);
}

}  // namespace

Pipeline::Pipeline(comm::Group group, store::NodeStore& store, commits::Ledger& ledger,
                   std::unique_ptr<ProtectStage> protect, std::unique_ptr<Stage> flush, Schedule schedule, Pause& pause,
                   Clock& clock, const Log& log, Metrics& metrics, store::NodeRecords* flush_records)
    : group_(std::move(group)),
      store_(store),
      ledger_(ledger),
      protect_(std::move(protect)),
      flush_(std::move(flush)),
      schedule_(std::move(schedule)),
      pause_(pause),
      clock_(clock),
      log_(log),
      metrics_(metrics),
      flush_record_(flush_records, ledger, clock, log),
      completions_(ledger, log) {
  if (schedule_.mode == PipelineMode::inline_) return;
  auto channel = open_channel();
  if (!channel) return;
  store_.spare(store::FileKind::container, schedule_.max_pending);
  start_worker(std::move(channel));
}

Submitted Pipeline::submit(const CommitHead& commit, const CommitCost& cost, std::optional<Level> level) {
  ++commits_;
  ++unflushed_;
  Job job{{commit, {}}, false, false, clock_.seconds(), cost.bytes, cost.blocked_s};
  decide(job, level);

  Submitted submitted = take_hold(job);
  if (job.flush && !submitted.not_persistent) {
    const double begin_s = clock_.seconds();
    submitted.not_persistent = flush_->prepare(group_, job.files);
    job.prepare_s = clock_.seconds() - begin_s;
  }
  if (submitted.not_persistent) job.flush = false;
  else if (job.flush && worker_) unflushed_ = 0;
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
  if (group_.is_root()) tell(job, processed);
  return processed;
}

/// COLLECTIVE, where a worker flushes. How far this commit is to be taken: as far as its turn says, but for the last of
/// a job, for which the time is known that is left.
void Pipeline::decide(Job& job, std::optional<Level> level) {
  const auto is_due = [](std::uint64_t count, std::uint64_t every) { return every != 0 && count % every == 0; };
  job.protect = protect_->is_possible() && is_due(commits_, schedule_.protect_every);
  job.flush = schedule_.flush_every != 0 && unflushed_ >= schedule_.flush_every;
  // What a worker met one rank may know and another not yet.
  if (worker_ && schedule_.flush_every != 0) job.flush = group_.any(flush_failed_.exchange(false)) || job.flush;
  if (!level) return;
  job.flush = *level == Level::persistent;
  if (!job.flush) job.protect = *level == Level::protected_;
}

Level Pipeline::highest_level() const {
  if (schedule_.flush_every != 0) return Level::persistent;
  return protects() ? Level::protected_ : Level::local;
}

/// COLLECTIVE, if anything is to be done. Pins the container; what cannot be done without is not done.
Submitted Pipeline::take_hold(Job& job) {
  const CommitHead& commit = job.files.commit;
  const auto local = attempt([&] {
    job.files.container = store::Pin(store_, store::FileKind::container, group_.logical_rank(), {commit.id, {}});
  });
  Submitted not_done;
  if (!job.protect && !job.flush) return not_done;
  const auto not_held = group_.vote(local);
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
    processed.not_protected = run_timed(*protect_, patient(group, job), job.files, 0);
    if (!processed.not_protected) processed.protected_after_s = since_commit_s();
  }
  if (reach == store::Reach::known) worker_->made_progress();
  retire(reach);
  make_next_ready(job.files);
  if (job.flush) {
    processed.not_persistent = flush(group, job, reach, processed.flush_tries);
    const auto entry = ledger_.find(job.files.commit.id);
    // A flush may be over when a later start of the run is found to have taken over.
    if (!processed.not_persistent || (entry && entry->persistent)) processed.persistent_after_s = since_commit_s();
    if (!processed.not_persistent && reach == store::Reach::all) unflushed_ = 0;
    retire(reach);
  }
  return processed;
}

/// COLLECTIVE, on `group`.
std::optional<Failure> Pipeline::run_timed(Stage& stage, const comm::Group& group, const CommitFiles& files,
                                           double prepare_s) {
  const double begin_s = clock_.seconds();
  auto failure = stage.run(group, files);
  if (!failure) timer_.add(stage.reaches(), prepare_s + clock_.seconds() - begin_s);
  return failure;
}

/// COLLECTIVE, on `channel`, in the worker's thread. Only what ends the engine ends it, too.
void Pipeline::work(const comm::Group& channel, Job& job) {
  pause_.begin();
  const Submitted processed = process(channel, job, store::Reach::known);
  if (job.flush) flush_failed_ = processed.not_persistent.has_value();
  note(job, processed);
  if (channel.is_root()) tell(job, processed);
  if (processed.not_persistent && processed.not_persistent->code == ErrorCode::busy) {
    throw Error(*processed.not_persistent);
  }
}

/// Local. The first checkpoints of a job find no file to refill: each makes the next one's ready, so that only the
/// first waits for new storage. After parity, which needs its room first. Where there is no room, the next create says
/// so. Parity is not made ready: protection may fail or be off, and the next container may need the space.
void Pipeline::make_next_ready(const CommitFiles& files) {
  const std::size_t under_way = worker_ ? schedule_.max_pending : 1;
  if (!files.container || !store_.memory_backed()) return;
  // Files that are only needed while an older commit waits for the protection of a newer one come and go.
  if (store_.files(store::FileKind::container) >= schedule_.keep + under_way) return;
  (void)attempt([&] { store_.make_ready(store::FileKind::container, files.container->size_bytes(), under_way); });
}

std::optional<Failure> Pipeline::wait_for_room() {
  if (!worker_ || !is_full()) return failure();
  switch (schedule_.when_full) {
    case WhenFull::block: {
      const Pause::Awaited awaited(pause_);
      return worker_->wait_until_below(schedule_.max_pending);
    }
    case WhenFull::skip: return worker_->failure();  // all ranks decide that together
    case WhenFull::fail: break;
  }
  return Failure{ErrorCode::no_space,
                 compose("{} commits are under way to higher levels (pipeline.max_pending); make checkpoints less "
                         "often, or set pipeline.when_full to block or skip",
                         worker_->pending()),
                 -1,
                 {},
                 0};
}

void Pipeline::skip_flushes() {
  const Pause::Awaited awaited(pause_);
  const std::uint64_t begun = group_.max(worker_->hold());
  const std::vector<CommitHead> skipped = worker_->skip_flushes(begun);
  if (!skipped.empty()) unflushed_ = schedule_.flush_every;  // the next one is due
  skipped_ += skipped.size();
  for (const CommitHead& commit : skipped) {
    const Failure failure{ErrorCode::not_found,
                          compose("the flush of {} was skipped: checkpoints are made faster than they can be flushed "
                                  "(pipeline.when_full = skip; {} so far)",
                                  commit.tag, skipped_),
                          -1,
                          {},
                          0};
    completions_.failed(commit.id, Level::persistent, failure);
    metrics_.skipped(commit);
    if (group_.is_root()) log_.warning(failure.message);
  }
  group_.together([&] { comm::throw_if(worker_->wait_until_below(schedule_.max_pending)); });
}

std::optional<Failure> Pipeline::wait_until_idle() {
  const Pause::Awaited awaited(pause_);
  return worker_ ? worker_->wait_until_below(1) : std::nullopt;
}

Waited Pipeline::wait_for(std::string_view tag, Level level, Deadline deadline) {
  const auto entry = worker_ ? ledger_.find(tag) : std::nullopt;
  if (!entry) return {};
  const Pause::Awaited awaited(pause_);
  const Id128 commit_id = entry->commit.id;
  const auto is_reached = [&] {
    const auto now = ledger_.find(commit_id);
    return now && now->level() >= level;
  };
  return worker_->wait_for(commit_id, is_reached, deadline);
}

void Pipeline::on_complete(std::string_view tag, Level level, Completions::Callback callback) {
  const auto entry = ledger_.find(tag);
  if (!entry) throw Error(ErrorCode::not_found, nothing_of(tag));
  completions_.expect(entry->commit, level, std::move(callback));
}

void Pipeline::continue_from(const CommitHead& commit, bool persistent) {
  // A job that never lives for N commits must get something to the prefix all the same.
  unflushed_ = persistent ? 0 : schedule_.flush_every;
  const Protections found = judge_protection(commit);
  // At the level that the survey found: the protection that it was recovered from still exists. This also removes the
  // unfinished protections of starts that died while protecting it again, which would add up otherwise.
  retire(store::Reach::all);
  const bool is_current = !found.current.is_none();
  const bool is_protected = is_current || !found.sound.is_none();
  if (!is_protected) ledger_.unprotect(commit.id);
  const bool is_due = !is_current && protect_->is_possible() && schedule_.protect_every != 0;
  if (is_due) protect_again(commit);
  // Without the former copies, what is left of a protection that was asked for once may protect nothing.
  else if (is_protected || found.best.is_none() || !protect_->is_possible()) (void)drop_former_copies(commit);
}

void Pipeline::require(std::string_view tag, Level level) {
  // One rank's worker may have retired it, and another's not yet.
  enum Found : std::uint64_t { reached, lower, nothing };
  const std::optional<commits::Entry> entry = ledger_.find(tag);
  const std::uint64_t found = group_.max(!entry ? nothing : entry->level() < level ? lower : reached);
  if (found == nothing) {
    throw Error(ErrorCode::not_found, nothing_of(tag));
  }
  if (found == reached) return;
  if (level == Level::protected_ && !protect_->is_possible()) {
    throw Error(ErrorCode::invalid_argument,
                "this run's redundancy scheme is single, so no commit can be protected; run on two nodes or more, with "
                "redundancy.scheme auto, partner, xor or rs");
  }
  group_.together([&] { comm::throw_if(wait_until_idle()); });
  auto failure = run(level == Level::persistent ? *flush_ : *protect_, entry->commit);
  if (failure && failure->code == ErrorCode::not_found && level == Level::persistent) {
    failure->message += "; open this commit first, so that every rank has its container";
  }
  comm::throw_if(failure);
  retire(store::Reach::all);
}

/// COLLECTIVE, while nothing is under way. One stage, now.
std::optional<Failure> Pipeline::run(Stage& stage, const CommitHead& commit) {
  const Pause::Awaited awaited(pause_);
  CommitFiles files{commit, {}};
  auto failure = group_.try_together([&] {
    files.container = store::Pin(store_, store::FileKind::container, group_.logical_rank(), {commit.id, {}});
  });
  const double begin_s = clock_.seconds();
  if (!failure) failure = stage.prepare(group_, files);
  if (!failure) failure = run_timed(stage, group_, files, clock_.seconds() - begin_s);
  if (!failure && stage.reaches() == Level::persistent) unflushed_ = 0;
  const auto entry = ledger_.find(commit.id);
  // A flush may be over when a later start of the run is found to have taken over.
  const bool is_reached = !failure || (stage.reaches() == Level::persistent && entry && entry->persistent);
  if (!is_reached) settle(commit, stage.reaches(), *failure, 1);
  else settle(commit, stage.reaches(), {files.container->size_bytes(), 0}, std::nullopt);
  return failure;
}

void Pipeline::finish() {
  flush_newest();
  completions_.deliver_all();
}

/// COLLECTIVE.
void Pipeline::flush_newest() {
  const std::optional<commits::Entry> newest = ledger_.newest();
  if (schedule_.flush_every == 0 || !schedule_.flush_at_end || !newest || newest->persistent || ledger_.is_lost())
    return;
  const auto failure = run(*flush_, newest->commit);
  if (!group_.is_root()) return;
  if (failure) {
    log_.warning(not_flushed(ledger_, newest->commit, *failure, 1));
  } else {
    log_.info(compose("{} is persistent", newest->commit.tag));
  }
}

/// What the ranks have of its protections; the ledger knows then which one is worth keeping.
Protections Pipeline::judge_protection(const CommitHead& commit) {
  const Protections found = protect_->find(group_, commit.id);
  if (!found.current.is_none()) ledger_.protect(commit.id, found.current);
  else if (!found.sound.is_none()) ledger_.protect(commit.id, found.sound);
  else ledger_.prefer(commit.id, found.best);
  return found;
}

/// The copies that protected the commit on its former nodes stay until it is protected where its containers lie now. A
/// failure is logged: the commit is open all the same.
void Pipeline::protect_again(const CommitHead& commit) {
  const double begin_s = clock_.seconds();
  std::optional<Failure> failure = run(*protect_, commit);
  // Where there is no room for both, the former copies are worth less than the new protection.
  if (!failure || failure->code == ErrorCode::no_space) {
    const bool room_was_made = drop_former_copies(commit);
    if (failure && room_was_made) {
      if (group_.is_root()) {
        log_.info(
            compose("no room to protect {} beside the copies on its former nodes; removing them and "
                    "retrying",
                    commit.tag));
      }
      failure = run(*protect_, commit);
    }
  }
  if (!failure) retire(store::Reach::all);  // its former protection
  if (!group_.is_root()) return;
  if (failure) {
    const auto entry = ledger_.find(commit.id);
    const bool is_protected = entry && entry->in_stores == Level::protected_;
    log_.warning(compose("{} is open and {}: {}", commit.tag,
                         is_protected ? "keeps the protection that it had" : "not protected against the loss of a node",
                         to_string(*failure)));
  } else {
    log_.info(compose("{} is protected again ({}), took {}", commit.tag, to_string(protect_->scheme()),
                      human_seconds(clock_.seconds() - begin_s)));
  }
}

/// What lies on nodes that its owners have left only costs space: it goes at the latest when its commit is retired.
/// Whether any rank dropped something.
bool Pipeline::drop_former_copies(const CommitHead& commit) {
  std::size_t dropped = 0;
  const auto failure = attempt([&] { dropped = store_.drop_adopted(commit.id); });
  if (failure) log_.debug(compose("former copies of {} could not be removed: {}", commit.tag, to_string(*failure)));
  return group_.any(dropped != 0);
}

}  // namespace kedge::pipeline
