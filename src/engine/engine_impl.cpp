#include "engine/engine_impl.hpp"

#include <algorithm>
#include <utility>

#include "base/attempt.hpp"
#include "base/keep_forever.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "engine/protector.hpp"
#include "persist/container_source.hpp"
#include "persist/tag_directory.hpp"

namespace kedge::engine {
namespace {

/// The path as a shell takes it for one word: people paste what the log says.
std::string shell_word(const std::string& path) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-";
  if (path.find_first_not_of(kPlain) == std::string::npos) return path;
  std::string word = "'";
  for (const char c : path) word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return word + "'";
}

}  // namespace

EngineImpl::EngineImpl(std::unique_ptr<Communicator> communicator, Options options, Environment environment)
    : context(std::move(communicator), std::move(options), std::move(environment)),
      flusher(context),
      writer(context, flusher),
      reader(context) {
  collective(context, [&] { start(context); });
  const recovery::Storage storage{*context.store, *context.tier, context.options.persistent.trust,
                                  context.catalog.get()};
  context.recovery = std::make_unique<recovery::Recovery>(
      context.group(), commits::RunIdentity{context.run, context.run_id, context.incarnation}, storage, context.ledger,
      recovery::RecoveryPolicy{context.options.open.verify, context.options.store.durable, context.options.store.keep,
                               piece_settings(context.options)},
      context.log);
  context.sources = std::make_unique<recovery::SourceRecovery>(
      context.group(),
      [this](const std::string& prefix) {
        return persist::PosixTier::of_source(context.environment.file_system, prefix, context.options.persistent);
      },
      context.log);
}

EngineImpl::~EngineImpl() {
  if (!context.dead_because.empty()) keep_forever(std::move(context.store));
}

bool EngineImpl::need_checkpoint() {
  const std::uint64_t every = context.options.schedule.every;
  const bool due = every != 0 && ++need_checkpoint_calls_ % every == 0;
  // Rank 0 decides for all: later it will also look at the clock, which differs between ranks.
  return context.enter(Call::need_checkpoint, 0, {}, context.is_root() && due ? 1 : 0) != 0;
}

void EngineImpl::wait(std::string_view tag, Level level) {
  std::optional<Failure> local = context.wrong_phase(Call::wait, {Phase::idle, Phase::reading});
  if (!local) local = check_tag(tag);
  context.enter(Call::wait, hash_of(tag) ^ static_cast<std::uint64_t>(level), local);
  const std::optional<commits::Entry> commit = context.ledger.find(tag);
  if (!commit) {
    throw Error(ErrorCode::not_found,
                compose("no commit '{}' is kept; wait for a tag that was committed or opened", tag));
  }
  if (commit->level() >= level) return;
  if (level == Level::persistent) {
    auto failure = flusher.flush(*commit);
    if (failure && failure->code == ErrorCode::not_found) {
      failure->message += "; open this commit first, so that every rank has its container";
    }
    comm::throw_if(failure);
    context.retire();
    return;
  }
  if (context.redundancy.scheme == Scheme::single) {
    throw Error(ErrorCode::invalid_argument,
                "commits are not protected with scheme single; set redundancy.scheme to partner or xor, and run on "
                "two nodes or more");
  }
  comm::throw_if(protect(context, *commit));
  context.retire();
}

void EngineImpl::pin(std::string_view tag, bool pinned) const {
  std::optional<Failure> local = context.wrong_phase(Call::pin, {Phase::idle, Phase::reading});
  if (!local) local = check_tag(tag);
  context.enter(Call::pin, hash_of(tag) ^ (pinned ? 1U : 0U), local);
  comm::throw_if(context.vote(attempt([&] {
    if (context.prefix) context.prefix->set_pinned(context.run_id, Tag(tag), pinned);
  })));
}

void EngineImpl::finalize() {
  context.enter(Call::finalize, 0);
  if (context.phase == Phase::writing) writer.abandon();
  std::optional<Failure> failure;
  if (context.phase == Phase::reading) {
    try {
      reader.close();
    } catch (const Error& error) {
      if (error.code() == ErrorCode::timeout) throw;
      failure = error.failure();  // the same on all ranks; the end goes on
    }
  }
  flush_newest();
  leave_store();
  context.phase = Phase::finished;
  comm::throw_if(failure);
}

/// COLLECTIVE. The allocation may end with the job: what it came to last goes to the prefix, if anything does. A
/// failure is said and does not keep the job from ending.
void EngineImpl::flush_newest() {
  if (context.options.persistent.every == 0 || context.options.store.on_exit == OnExit::remove) return;
  const std::optional<commits::Entry> newest = context.ledger.newest();
  if (!newest || newest->persistent || context.ledger.is_lost()) return;
  const auto failure = flusher.flush(*newest);
  if (!context.is_root()) return;
  if (failure) {
    context.log.warning(compose("{} is not on the parallel filesystem: {}", newest->commit.tag, to_string(*failure)));
  } else {
    context.log.info(compose("{} is persistent", newest->commit.tag));
  }
}

/// COLLECTIVE. store.on_exit = remove: the next start may begin from zero, because this was asked for. The
/// containers go first, on every rank, and what tells of them last: a crash in between is `unrecoverable` at the
/// next start, never a silent start from zero beside containers that live.
void EngineImpl::remove_on_purpose() {
  if (context.ledger.is_lost()) {
    if (context.is_root()) {
      context.log.warning(
          "store.on_exit = remove was not carried out: what is left of commits that could not be had stays, for when "
          "the nodes that held the rest are back");
    }
    return;
  }
  comm::throw_if(context.vote(attempt([&] { context.store->remove_all(); })));
  comm::throw_if(context.vote(attempt([&] {
    context.records->forget_commit();
    if (context.catalog) context.catalog->forget_commits();
  })));
  context.ledger.forget_all();
  context.noted_on_prefix = context.noted_in_store = false;
}

/// COLLECTIVE. store.on_exit = remove_if_persistent: what is newest outlives the stores, if each rank finds its
/// container there as the manifest knows it. What tells of commits stays.
void EngineImpl::remove_if_persistent() {
  const std::optional<commits::Entry> newest = context.ledger.newest();
  if (!newest || context.ledger.is_lost()) return;
  std::optional<Failure> not_there;
  if (newest->persistent)
    not_there = context.vote(attempt([&] {
      const std::string directory = persist::directory_name(newest->commit);
      (void)persist::ContainerSource(*context.environment.file_system, fs::join(context.prefix_path, directory),
                                     newest->commit.id, context.logical_rank());
    }));
  if (newest->persistent && !not_there) {
    comm::throw_if(context.vote(attempt([&] { context.store->remove_all(); })));
  } else if (context.is_root()) {
    context.log.info(compose("{} is not persistent: the node-local files stay{}", newest->commit.tag,
                             not_there ? " (" + to_string(*not_there) + ")" : ""));
  }
}

void EngineImpl::leave_store() {
  if (context.options.store.on_exit == OnExit::remove) remove_on_purpose();
  if (context.options.store.on_exit == OnExit::remove_if_persistent) remove_if_persistent();
  std::uint64_t kept_bytes = 0;
  const auto local = attempt([&] {
    context.store->give_back_unused();
    kept_bytes = context.store->used_bytes();
    context.lock->release();
  });
  context.comm->all_reduce(std::span(&kept_bytes, 1), Reduction::sum, context.deadline());
  const auto failure = context.vote(local);
  if (context.is_root()) {
    const std::string place = context.store->memory_backed() ? "of memory" : "on disk";
    if (kept_bytes != 0) {
      const bool several = context.topology.node.size() < static_cast<std::size_t>(context.comm->size());
      context.log.info(compose("finalized: {} {} stay in {}{} for the next start; free them{} with: rm -r {}",
                               human_bytes(kept_bytes), place, context.store->directory(),
                               several ? " and on the other nodes" : "", several ? ", on each node its own," : "",
                               shell_word(context.store->directory())));
    } else {
      context.log.info("finalized: nothing stays on the node-local store");
    }
  }
  comm::throw_if(failure);
}

}  // namespace kedge::engine
