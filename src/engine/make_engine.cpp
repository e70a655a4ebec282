// How an engine's parts are made of its options and of what the start settled.
#include <string>
#include <utility>

#include "base/text.hpp"
#include "engine/engine_impl.hpp"
#include "persist/posix_prefix.hpp"
#include "persist/prefix_runs.hpp"
#include "pipeline/flush_stage.hpp"

namespace kedge::engine {
namespace {

// How long the work in the background stands still for one commit, of comm.timeout_s: other ranks wait for it.
constexpr double kPausedShare = 0.25;

std::string paused_too_long(pipeline::BackgroundPause::Seconds limit) {
  return compose(
      "background work resumed by itself after {} of pause(), the limit for each commit, because other ranks wait for "
      "it; call resume() sooner, or raise comm.timeout_s",
      human_seconds(limit.count()));
}

}  // namespace

EngineImpl::EngineImpl(std::unique_ptr<Communicator> communicator, Options options,
                       const EngineEnvironment& environment)
    : options_(std::move(options)),
      environment_(environment),
      log_(options_.log),
      signal_(environment_.watch_signals(options_.exit.signals, log_)),
      group_(std::move(communicator), comm::Group::Seconds(options_.comm.timeout_s)),
      started_(lifecycle_.collective(
          [&] { return group_.run_or_leave([&] { return start::start(group_, options_, environment_, log_); }); })),
      markers_(group_, {started_.prefix.start.get(), started_.prefix.markers.get()}, *started_.node.records,
               started_.run.id, started_.commit_evidence, log_),
      recreation_({.group = group_,
                   .node = started_.node,
                   .markers = markers_,
                   .file_system = *environment_.file_system,
                   .clock = *environment_.clock,
                   .log = log_,
                   .durable = options_.store.durable}),
      pause_(group_.timeout() * kPausedShare, [this](auto limit) { log_.warning(paused_too_long(limit)); }),
      metrics_(make_event_log()),
      pipeline_(lifecycle_.collective([&] { return group_.run_or_leave([&] { return make_pipeline(environment); }); })),
      recovery_(make_recovery()),
      schedule_(options_.schedule, environment_.clock->seconds()),
      job_end_(group_, pipeline_,
               {.exit = options_.exit,
                .deadline = options_.deadline,
                .slurm_end = environment_.find_variable(kSlurmEndVariable),
                .signal = signal_,
                .clock = *environment_.clock,
                .log = log_}),
      staging_(
          environment_.devices, {}, not_registered(),
          [this](LogLevel level, std::string_view line) { log_.write(level, line); }, direct_writes()),
      copies_(std::make_shared<device::CopyPool>(environment_.devices)),
      writer_(writer_uses()),
      reader_(reader_uses(), make_source_recovery()) {
  if (started_.commits_exist) ledger_.set_commits_exist();
  if (options_.device.snapshot && !pipeline_.waits().is_in_background() && group_.is_root()) {
    log_.warning(options_.pipeline.mode == PipelineMode::inline_
                     ? "device.snapshot has no effect with pipeline.mode = inline: set that to auto or background"
                     : "device.snapshot has no effect without background work (another message at log level info says "
                       "why there is none)");
  }
  log_experiments();
  metrics_.record_start(group_.size(), environment_.clock->seconds() - begun_s_);
}

/// Users of options that no GPU has run yet learn it from the log, too.
void EngineImpl::log_experiments() const {
  if (!group_.is_root()) return;
  if (options_.device.snapshot) log_.info("device.snapshot is experimental: no application has run it on a GPU yet");
  if (options_.device.path == DevicePath::gds) {
    log_.info("device.path = gds is experimental: it has not been run with the driver nvidia-fs yet");
  }
}

/// Logs, once per node, that the store cannot be registered; empty if it is not to be.
device::Staging::OnRefused EngineImpl::not_registered() const {
  if (options_.device.path == DevicePath::buffers) return {};
  return [this](const Failure& why) {
    if (started_.topology.node_ranks.front() != group_.rank()) return;
    log_.warning(
        compose("cannot copy GPU memory straight into the node-local store; using pinned buffers instead: {} "
                "(device.path = buffers skips the attempt)",
                why.message));
  };
}

/// Whether it serves is the same for all ranks of a node: one of them says so.
device::DirectWrites::Settings EngineImpl::direct_writes() const {
  return {options_.device.path == DevicePath::gds, [this](LogLevel level, std::string_view line) {
            if (started_.topology.node_ranks.front() == group_.rank()) log_.write(level, line);
          }};
}

Engine EngineEnvironment::make_engine(std::unique_ptr<Communicator> communicator, Options options,
                                      const EngineEnvironment& environment) {
  return Engine(std::make_unique<EngineImpl>(std::move(communicator), std::move(options), environment));
}

Writer::Uses EngineImpl::writer_uses() {
  return {.group = group_,
          .lifecycle = lifecycle_,
          .ledger = ledger_,
          .markers = markers_,
          .pause = pause_,
          .pipeline = pipeline_,
          .recovery = recovery_,
          .staging = staging_,
          .copies = *copies_,
          .store = *started_.node.store,
          .recreation = recreation_,
          .file_system = *environment_.file_system,
          .clock = *environment_.clock,
          .log = log_,
          .run = started_.run,
          .copy_threads = started_.copy_threads,
          .keep = options_.store.keep,
          .durable = options_.store.durable,
          .snapshots = options_.device.snapshot};
}

Reader::Uses EngineImpl::reader_uses() {
  return {.group = group_,
          .lifecycle = lifecycle_,
          .ledger = ledger_,
          .markers = markers_,
          .pause = pause_,
          .metrics = metrics_,
          .pipeline = pipeline_,
          .recovery = recovery_,
          .staging = staging_,
          .store = *started_.node.store,
          .recreation = recreation_,
          .prefix = *started_.prefix.storage.reader,
          .file_system = *environment_.file_system,
          .clock = *environment_.clock,
          .log = log_,
          .verify = options_.open.verify,
          .copy_threads = started_.copy_threads,
          .load_buffer_bytes = options_.open.buffer_bytes};
}

/// Events that all ranks know of are written by one rank of each node.
std::unique_ptr<pipeline::EventLog> EngineImpl::make_event_log() const {
  if (options_.events.path.empty() || started_.topology.node_ranks.front() != group_.rank()) return nullptr;
  Options::Events events = options_.events;
  events.path = start::absolute_path(environment_, events.path);
  return std::make_unique<pipeline::EventLog>(
      environment_.file_system, events,
      pipeline::EventOrigin{started_.run, start::node_name(environment_, group_.rank()), group_.rank(),
                            environment_.file_system->user(), started_.job, started_.prefix_path},
      environment_.clock, log_);
}

/// What commits go through.
pipeline::Stages EngineImpl::make_stages(std::vector<pipeline::StageWithPolicy> more) {
  store::NodeStore& store = *started_.node.store;
  auto protect = std::make_unique<pipeline::ProtectStage>(
      store, ledger_,
      pipeline::ProtectSettings{
          .assignment = started_.assignment, .pieces = environment_.pieces, .durable = options_.store.durable});
  auto flush = std::make_unique<pipeline::FlushStage>(
      pipeline::FlushStorage{.store = store,
                             .ledger = ledger_,
                             .prefix = started_.prefix.storage,
                             .markers = started_.prefix.markers.get()},
      pipeline::FlushSettings{.run = started_.run,
                              .persistent = options_.persistent,
                              .second_root = started_.assignment.second_root,
                              .durable = options_.store.durable,
                              .calls_between_pieces = options_.pipeline.mode != PipelineMode::inline_,
                              .between_pieces = [this] { pause_.wait_while_paused(); },
                              .is_ended = [this] { return pause_.is_ended(); },
                              .io = options_.io,
                              .view_shards_max = environment_.view_shards_max},
      *environment_.clock, log_);
  using pipeline::StagePolicy;
  const pipeline::ProtectStage& protects = *protect;
  std::vector<pipeline::StageWithPolicy> list;
  list.push_back(
      {std::move(protect), std::make_unique<StagePolicy>(StagePolicy::Rule::every_nth, options_.redundancy.every)});
  list.push_back(
      {std::move(flush), std::make_unique<StagePolicy>(StagePolicy::Rule::nth_since_last, options_.persistent.every)});
  for (pipeline::StageWithPolicy& one : more) list.push_back(std::move(one));
  return {std::move(list), protects};
}

pipeline::Pipeline EngineImpl::make_pipeline(const EngineEnvironment& environment) {
  const pipeline::PipelineSettings settings{
      .store_keep = options_.store.keep,
      // Commits that are removed with the stores are not worth a flush at the end.
      .flush_at_end = options_.store.on_exit != OnExit::remove,
      .has_snapshots = options_.device.snapshot,
      .waits = {.max_pending = options_.pipeline.max_pending,
                .when_full = options_.pipeline.when_full,
                .after_each_submit = environment.waits_for_worker},
      .executor = {.channel = {options_.pipeline.mode, options_.pipeline.messages, options_.pipeline.interface},
                   .cores = options_.pipeline.cores,
                   .bandwidth_limit = options_.redundancy.bandwidth_limit},
      .run = run_to_name()};
  return {group_,
          make_stages(environment.more_stages()),
          settings,
          {.store = *started_.node.store,
           .ledger = ledger_,
           .pause = pause_,
           .clock = *environment_.clock,
           .log = log_,
           .observers = {&metrics_},
           .flush_records = group_.is_root() ? started_.node.records.get() : nullptr}};
}

/// Most jobs have one run and give it no name. If a job gave one, its process or launch may have several.
std::string EngineImpl::run_to_name() const {
  return started_.run.name == persist::default_run_name({}) ? std::string() : started_.run.name;
}

recovery::Recovery EngineImpl::make_recovery() {
  return {group_,
          {.run = started_.run,
           .store = *started_.node.store,
           .prefix_storage = *started_.prefix.storage.reader,
           .ledger = ledger_,
           .trust = options_.persistent.trust,
           .markers = started_.prefix.markers.get(),
           .other_ranks = other_ranks(),
           .domain = started_.topology.domain_ranks.front(),
           .is_drained = environment_.is_drain},
          {.verify = options_.open.verify == Verify::headers ? Verify::headers : Verify::all,
           .durable = options_.store.durable,
           .keep = options_.store.keep,
           .pieces = environment_.pieces,
           .defers_reads = pipeline_.waits().is_in_background()},
          log_};
}

/// Only as many ranks as saved commits can flush them.
OtherRanks EngineImpl::other_ranks() const {
  return environment_.is_drain ? OtherRanks::refuse : options_.open.other_ranks;
}

recovery::SourceRecovery EngineImpl::make_source_recovery() {
  return {group_,
          [this](const std::string& prefix) -> std::unique_ptr<persist::PrefixReader> {
            return persist::posix_source_reader(environment_.file_system, prefix, options_.persistent);
          },
          other_ranks(), log_};
}

}  // namespace kedge::engine
