#include "engine/engine_impl.hpp"

#include <chrono>
#include <string>
#include <utility>

#include "base/attempt.hpp"
#include "base/keep_forever.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "base/utf8.hpp"
#include "engine/continuation.hpp"
#include "engine/store_loss.hpp"
#include "persist/posix_prefix_storage.hpp"
#include "persist/prefix_retention.hpp"
#include "persist/prefix_runs.hpp"
#include "pipeline/flush_stage.hpp"

namespace kedge::engine {
namespace {

// How long the work in the background stands still for one commit, of comm.timeout_s: other ranks wait for it.
constexpr double kPausedShare = 0.25;

Setup make_setup(Options options, Environment environment) {
  const Log log(options.log);
  return {std::move(options), std::move(environment), log};
}

std::string paused_too_long(pipeline::Pause::Seconds limit) {
  return compose(
      "background work resumed by itself after {} of pause(), the limit for each commit, as other ranks wait for it; "
      "call resume() sooner, or raise comm.timeout_s",
      human_seconds(limit.count()));
}

}  // namespace

EngineImpl::EngineImpl(std::unique_ptr<Communicator> communicator, Options options, Environment environment)
    : setup_(make_setup(std::move(options), std::move(environment))),
      signal_(setup_.environment.watch_signals(setup_.options.exit.signals, setup_.log)),
      group_(std::move(communicator), comm::Group::Seconds(setup_.options.comm.timeout_s)),
      started_(lifecycle_.collective([&] { return group_.guarded([&] { return start(setup_, group_); }); })),
      notes_(group_, started_.prefix.records.get(), *started_.node.records, started_.run.id, started_.noted,
             setup_.log),
      pause_(group_.timeout() * kPausedShare, [this](auto limit) { setup_.log.warning(paused_too_long(limit)); }),
      metrics_(make_event_log()),
      pipeline_(lifecycle_.collective([&] { return group_.guarded([&] { return make_pipeline(); }); })),
      recovery_(make_recovery()),
      schedule_(setup_.options.schedule, setup_.environment.clock->seconds()),
      job_end_(setup_, group_, pipeline_, signal_),
      staging_(
          setup_.environment.devices, {}, not_registered(),
          [this](LogLevel level, std::string_view line) { setup_.log.write(level, line); }, direct_writes()),
      copies_(std::make_shared<device::CopyPool>(setup_.environment.devices)),
      writer_(parts()),
      reader_(parts(), make_source_recovery()) {
  if (started_.commits_exist) ledger_.set_commits_exist();
  if (setup_.options.device.snapshot && !pipeline_.waits().is_in_background() && group_.is_root()) {
    setup_.log.warning(setup_.options.pipeline.mode == PipelineMode::inline_
                           ? "device.snapshot has no effect with pipeline.mode = inline: set that to auto or background"
                           : "device.snapshot has no effect, as nothing is done in the background here (at log level "
                             "info another message says why)");
  }
  tell_of_experiments();
  metrics_.started(group_.size(), setup_.environment.clock->seconds() - begun_s_);
}

/// Whoever sets an option that no GPU has run yet is to know it from the log, too.
void EngineImpl::tell_of_experiments() const {
  const Options::Device& device = setup_.options.device;
  if (!group_.is_root()) return;
  if (device.snapshot) setup_.log.info("device.snapshot is experimental: no application has run it on a GPU yet");
  if (device.path == DevicePath::gds)
    setup_.log.info("device.path = gds is experimental: it has not been run with the driver nvidia-fs yet");
}

/// Logs, once per node, that the store cannot be registered; empty if it is not to be.
device::Staging::Refused EngineImpl::not_registered() const {
  if (setup_.options.device.path == DevicePath::buffers) return {};
  return [this](const Failure& why) {
    if (started_.topology.node.front() != group_.rank()) return;
    setup_.log.warning(
        compose("cannot copy GPU memory straight into the node-local store; using pinned buffers instead: {} "
                "(device.path = buffers skips the attempt)",
                why.message));
  };
}

/// Whether it serves is the same for all ranks of a node: one of them says so.
device::DirectWrites::Settings EngineImpl::direct_writes() const {
  return {setup_.options.device.path == DevicePath::gds, [this](LogLevel level, std::string_view line) {
            if (started_.topology.node.front() == group_.rank()) setup_.log.write(level, line);
          }};
}

void EngineImpl::create(std::string_view tag, const Attributes& attributes, Expected expected) {
  Clock& clock = *setup_.environment.clock;
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
      metrics_.checkpoint_failed(tag, error.failure());
    }
    throw;
  }
}

void EngineImpl::commit() {
  Clock& clock = *setup_.environment.clock;
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
      metrics_.checkpoint_failed(tag, error.failure());
    }
    throw;
  }
}

Parts EngineImpl::parts() {
  return {setup_, started_, group_,    lifecycle_, ledger_,  notes_,
          pause_, metrics_, pipeline_, recovery_,  staging_, *copies_};
}

/// A child of a fork may have been made while a lock of what is asked was held.
void EngineImpl::require_own_process() const {
  if (!is_own_process()) comm::throw_if(lifecycle_.ended());
}

Level EngineImpl::level(std::string_view tag) const {
  require_own_process();
  return ledger_.level(tag);
}

Counters EngineImpl::counters() const {
  require_own_process();
  Counters counters = metrics_.counters();
  counters.pending = pipeline_.waits().pending();
  return counters;
}

/// Events that all ranks know of are written by one rank of each node.
std::unique_ptr<pipeline::EventLog> EngineImpl::make_event_log() const {
  const Environment& environment = setup_.environment;
  if (setup_.options.events.path.empty() || started_.topology.node.front() != group_.rank()) return nullptr;
  Options::Events events = setup_.options.events;
  events.path = absolute_path(environment, events.path);
  return std::make_unique<pipeline::EventLog>(
      environment.file_system, events,
      pipeline::EventOrigin{started_.run, node_name(environment, group_.rank()), group_.rank(),
                            environment.file_system->user(), started_.job, started_.path},
      environment.clock, setup_.log);
}

bool EngineImpl::end() {
  if (!is_own_process()) return false;  // a child of a fork: the thread, its locks and the run are the parent's
  note_if_left_in_order();
  const pipeline::Stopped stopped = stop_worker();
  if (stopped == pipeline::Stopped::interrupted) {
    lifecycle_.die("it was destroyed while a commit was under way");
  }
  return stopped != pipeline::Stopped::not_ended;
}

/// Leaves after a timeout, too. Not after an orderly end: then nobody makes another call.
void EngineImpl::leave_by_error(std::string_view why) noexcept {
  has_failed_ = true;
  if (why.empty() || !is_own_process() || lifecycle_.phase() == Phase::finished) return;
  constexpr std::size_t kReasonBytes = 700;  // what is sent has 1 KiB, and the advice comes after it
  (void)attempt([&] {
    group_.communicator().depart(
        compose("rank {} has left its engine ({}); see that rank's own messages, and start the job again",
                group_.rank(), utf8_truncated(why, kReasonBytes)));
  });
}

/// A program that goes on without an error has done what it wanted with this engine, also where it does not finalize
/// it; one that was thrown out of its work may make another to go on with it.
void EngineImpl::note_if_left_in_order() const {
  const bool unwinds = std::uncaught_exceptions() != exceptions_;
  if (unwinds || has_failed_ || lifecycle_.is_dead() || lifecycle_.phase() == Phase::finished) return;
  (void)attempt([&] { mark_finished(started_.start_id); });
}

/// Local. Within a bound. What is kept for messages need not stay page-locked; a worker that copies a snapshot is not
/// waited for by way of its buffers, as a device may hang.
pipeline::Stopped EngineImpl::stop_worker() {
  const bool is_sealing = pipeline_.snapshots().is_sealing();
  if (!is_sealing) release_device();
  pause_.end();
  const pipeline::Stopped stopped = pipeline_.stop(Deadline::after(kEndTimeout));
  if (is_sealing && stopped != pipeline::Stopped::not_ended) release_device();
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

/// What commits go through.
pipeline::Stages EngineImpl::make_stages() {
  const Options& options = setup_.options;
  store::NodeStore& store = *started_.node.store;
  auto protect = std::make_unique<pipeline::ProtectStage>(
      store, ledger_, pipeline::ProtectSettings{started_.assignment, setup_.environment.pieces, options.store.durable});
  auto flush = std::make_unique<pipeline::FlushStage>(
      store, ledger_, *started_.prefix.prefix_storage, started_.prefix.records.get(),
      pipeline::FlushSettings{started_.run, options.persistent, started_.assignment.second_root, options.store.durable,
                              options.pipeline.mode != PipelineMode::inline_, [this] { pause_.pass(); },
                              [this] { return pause_.is_ended(); }, options.io, setup_.environment.view_shards_max},
      *setup_.environment.clock, setup_.log);
  using pipeline::Turns;
  const pipeline::ProtectStage& protects = *protect;
  std::vector<pipeline::StageWithTurns> list;
  list.push_back({std::move(protect), std::make_unique<Turns>(Turns::Rule::every_nth, options.redundancy.every)});
  list.push_back({std::move(flush), std::make_unique<Turns>(Turns::Rule::nth_since_last, options.persistent.every)});
  for (pipeline::StageWithTurns& one : setup_.environment.more_stages()) list.push_back(std::move(one));
  return {std::move(list), protects};
}

pipeline::Pipeline EngineImpl::make_pipeline() {
  const Options& options = setup_.options;
  const pipeline::PipelineSettings settings{
      .keep = options.store.keep,
      // What is going to be removed with the stores is not worth a flush at the end.
      .flush_at_end = options.store.on_exit != OnExit::remove,
      .has_snapshots = options.device.snapshot,
      .waits = {.max_pending = options.pipeline.max_pending,
                .when_full = options.pipeline.when_full,
                .after_each_submit = setup_.environment.waits_for_worker},
      .executor = {.channel = {options.pipeline.mode, options.pipeline.messages, options.pipeline.interface},
                   .cores = options.pipeline.cores,
                   .bandwidth_limit = options.redundancy.bandwidth_limit},
      .run = run_to_name()};
  return {group_,
          *started_.node.store,
          ledger_,
          make_stages(),
          settings,
          pause_,
          *setup_.environment.clock,
          setup_.log,
          {&metrics_},
          group_.is_root() ? started_.node.records.get() : nullptr};
}

/// Most jobs have one run and give it no name. If a job gave one, its process or launch may have several.
std::string EngineImpl::run_to_name() const {
  return started_.run.name == persist::default_run_name({}) ? std::string() : started_.run.name;
}

recovery::Recovery EngineImpl::make_recovery() {
  const Options& options = setup_.options;
  return {group_,
          started_.run,
          {*started_.node.store, *started_.prefix.prefix_storage, options.persistent.trust,
           started_.prefix.records.get(), setup_.environment.is_drain},
          ledger_,
          {options.open.verify == Verify::headers ? Verify::headers : Verify::all, options.store.durable,
           options.store.keep, setup_.environment.pieces, pipeline_.waits().is_in_background()},
          setup_.log};
}

recovery::SourceRecovery EngineImpl::make_source_recovery() {
  return {group_,
          [this](const std::string& prefix) -> std::unique_ptr<persist::PrefixStorage> {
            return persist::PosixPrefixStorage::of_source(setup_.environment.file_system, prefix,
                                                          setup_.options.persistent);
          },
          setup_.log};
}

std::optional<Tag> EngineImpl::open(const Selection& selection, Newer newer, recovery::Reading reading) {
  // The reserved word, for programs that pass a tag through from their users.
  const auto* tag = std::get_if<Tag>(&selection);
  const Selection meant = tag != nullptr && *tag == "latest" ? Selection(latest) : selection;
  if (setup_.options.open.verify == Verify::loaded) reading = recovery::Reading::in_load;
  return call([&] { return reader_.open(meant, newer, reading); });
}

bool EngineImpl::need_checkpoint() {
  return job_end_.need_checkpoint(schedule_.is_due(setup_.environment.clock->seconds()));
}

/// COLLECTIVE. In a start that has opened nothing the stores may hold what is waited for. The next create, or open,
/// looks again: here nothing is made room for.
void EngineImpl::check_stores() {
  if (ledger_.is_surveyed()) return;
  pipeline_.waits().quiesce();
  recreate_lost_stores(parts());
  recovery_.survey_only();
  ledger_.require_survey();
}

void EngineImpl::wait(std::string_view tag, Level level) {
  std::optional<Failure> local = lifecycle_.check_phase(Call::wait, {Phase::idle, Phase::reading});
  if (!local) local = check_tag(tag);
  if (!local) local = pipeline_.waits().wait_for(tag, level, Deadline::never()).failure;
  begin_call(group_, Call::wait, hash_of(tag) ^ static_cast<std::uint64_t>(level), local);
  check_stores();
  pipeline_.require(tag, level);
}

bool EngineImpl::wait_for(std::string_view tag, Level level, std::chrono::duration<double> at_most) {
  std::optional<Failure> local = lifecycle_.check_phase(Call::wait_for, {Phase::idle, Phase::reading});
  if (!local) local = check_tag(tag);
  pipeline::Waited waited;
  if (!local) {
    waited = pipeline_.waits().wait_for(tag, level, Deadline::after(at_most));
    local = waited.failure;
  }
  const std::uint64_t gave_up = waited.in_time ? 0 : 1;
  if (begin_call(group_, Call::wait_for, hash_of(tag) ^ static_cast<std::uint64_t>(level), local, gave_up) != 0)
    return false;
  check_stores();
  pipeline_.require(tag, level);
  return true;
}

void EngineImpl::pin(std::string_view tag, bool pinned) {
  std::optional<Failure> local = lifecycle_.check_phase(Call::pin, {Phase::idle, Phase::reading});
  if (!local) local = check_tag(tag);
  if (!local) local = pipeline_.waits().wait_until_idle(pipeline::Rest::ignored).failure;
  begin_call(group_, Call::pin, hash_of(tag) ^ (pinned ? 1U : 0U), local);
  ledger_.mark_prefix_changed();
  group_.together([&] {
    const Prefix& prefix = started_.prefix;
    if (prefix.records) persist::set_pinned(*prefix.prefix_storage, *prefix.records, started_.run.id, Tag(tag), pinned);
  });
}

}  // namespace kedge::engine
