#include "engine/context.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/attempt.hpp"
#include "base/text.hpp"
#include "engine/prefix_look.hpp"
#include "policy/retention.hpp"

namespace kedge::engine {
namespace {

// Each start counts from its own thousand thousands: a generation is greater than every one of earlier starts
// even when the stores that knew them are lost.
constexpr std::uint64_t kGenerationsPerIncarnation = 1'000'000;

std::string_view call_name(std::uint32_t code) { return to_string(static_cast<Call>(code)); }

std::string_view phase_name(Phase phase) {
  switch (phase) {
    case Phase::idle: return "nothing is under way";
    case Phase::writing: return "a checkpoint is being written (commit or abandon it first)";
    case Phase::reading: return "a checkpoint is open (close it first)";
    case Phase::finished: return "the engine was finalized";
  }
  return "unknown";
}

recovery::Holding holding_of(const store::Held& held) {
  const format::Superblock& superblock = *held.superblock;
  recovery::Holding holding;
  holding.generation = superblock.generation;
  holding.commit_id = superblock.commit_id;
  holding.parent_commit_id = superblock.parent_commit_id;
  holding.incarnation = superblock.incarnation;
  holding.logical_rank = superblock.logical_rank;
  holding.world_size = superblock.world_size;
  holding.time_ns = superblock.time_ns;
  holding.size_bytes = held.size_bytes;
  holding.tag = superblock.tag;
  holding.intact = held.intact;
  holding.damage = held.damage;
  return holding;
}

/// What the store scan says, sorted into what names a commit of this run and what does not.
struct Found {
  recovery::Holdings holdings;
  std::string unreadable;
  std::vector<Id128> strange;  ///< commits of another run
  std::uint64_t highest_generation = 0;
};

Found look(Context& context, Verify verify) {
  Found found;
  for (const store::Held& held : context.store->scan(context.run_id, verify)) {
    found.highest_generation = std::max(found.highest_generation, held.generation());
    if (held.kind == store::FileKind::master) continue;  // made anew if it is needed
    if (held.kind != store::FileKind::container) {
      // Parity only adds possibilities: what of it is damaged or another run's is as if it were not there.
      if (held.intact && held.set) found.holdings.set_files.push_back(*held.set);
      continue;
    }
    const bool of_this_run = held.superblock && held.superblock->run_id == context.run_id;
    if (of_this_run && held.superblock->logical_rank == held.logical_rank) {
      found.holdings.containers.push_back(holding_of(held));
      continue;
    }
    if (held.superblock && !of_this_run) found.strange.push_back(held.superblock->commit_id);
    if (!held.damage.empty() && found.unreadable.empty()) found.unreadable = held.damage;
  }
  return found;
}

/// COLLECTIVE. Candidates that the run record or this engine ruled out are not recoverable. The failure if the record
/// cannot be read: then some may have been ruled out that look well.
std::optional<Failure> rule_out(Context& context, recovery::Survey& survey) {
  std::vector<std::byte> discarded(survey.candidates.size());
  std::optional<Failure> local;
  if (context.catalog) {
    local = attempt([&] {
      for (std::size_t i = 0; i < discarded.size(); ++i) {
        discarded[i] = std::byte{context.catalog->is_discarded(survey.candidates[i].commit_id)};
      }
    });
  }
  auto failure = context.vote(local);
  if (failure) std::ranges::fill(discarded, std::byte{0});
  if (!discarded.empty()) context.comm->broadcast(discarded, 0, context.deadline());
  for (std::size_t i = 0; i < discarded.size(); ++i) {
    recovery::Candidate& candidate = survey.candidates[i];
    candidate.discarded = discarded[i] != std::byte{0};
    if (candidate.discarded) candidate.reason = "it was discarded when an older one was opened";
    else if (const auto why = context.excluded.find(candidate.commit_id); why != context.excluded.end())
      candidate.reason = why->second;
    else continue;
    candidate.recoverable = false;
  }
  return failure;
}

}  // namespace

Context::Context(std::unique_ptr<Communicator> communicator, Options given, Environment surroundings)
    : comm(std::move(communicator)),
      options(std::move(given)),
      environment(std::move(surroundings)),
      log(options.log) {}

std::uint64_t Context::enter(Call call, std::uint64_t argument_hash, const std::optional<Failure>& local,
                             std::uint64_t payload) const {
  return comm::agree_on_call(*comm, {static_cast<std::uint32_t>(call), argument_hash, payload}, local, call_name,
                             deadline());
}

std::optional<Failure> Context::wrong_phase(Call call, std::initializer_list<Phase> fitting) const {
  if (std::find(fitting.begin(), fitting.end(), phase) != fitting.end()) return std::nullopt;
  return Failure{
      ErrorCode::bad_state, compose("{} does not fit here: {}", to_string(call), phase_name(phase)), -1, {}, 0};
}

std::optional<Failure> Context::ended() const {
  const auto bad_state = [](std::string message) {
    return Failure{ErrorCode::bad_state, std::move(message), -1, {}, 0};
  };
  if (!dead_because.empty()) {
    return bad_state("this engine is dead (" + dead_because + "); end the job and start it again");
  }
  if (phase == Phase::finished) return bad_state("this engine was finalized; make a new one");
  return std::nullopt;
}

std::optional<Failure> Context::wrong_phase(std::string_view call, Phase fitting, std::string_view first) const {
  if (auto failure = ended()) return failure;
  if (phase == fitting) return std::nullopt;
  return Failure{ErrorCode::bad_state, compose("{} does not fit here: call {} first", call, first), -1, {}, 0};
}

recovery::Agreement Context::take_stock(Verify verify, const Selection* selection) {
  Found found;
  const auto local = attempt([&] { found = look(*this, verify); });
  comm::throw_if(vote(local));
  recovery::Agreement agreement =
      recovery::agree(*comm, found.holdings, {store->folder(), found.unreadable}, deadline());
  const recovery::Survey& survey = agreement.survey;
  look_at_prefix(*this, agreement.survey, selection);
  const auto not_ruled_out = rule_out(*this, agreement.survey);
  if (selection != nullptr) comm::throw_if(not_ruled_out);

  std::uint64_t highest = std::max(found.highest_generation, highest_generation);
  comm->all_reduce(std::span(&highest, 1), Reduction::max, deadline());
  highest_generation = std::max(highest, incarnation * kGenerationsPerIncarnation);

  std::vector<Commit> found_commits;
  unjudged.clear();
  const auto processes = static_cast<std::uint32_t>(comm->size());
  for (const recovery::Candidate& candidate : survey.candidates) {
    // One that was given up must not push out the one that it was given up for.
    if (not_ruled_out) unjudged.insert(candidate.commit_id);
    // Older ones than what this job can have again are superseded like any other.
    if (candidate.world_size != processes && found_commits.empty()) unjudged.insert(candidate.commit_id);
    if (!candidate.recoverable || !candidate.in_stores) continue;
    found_commits.push_back({candidate.generation,
                             candidate.commit_id,
                             candidate.tag,
                             candidate.is_protected ? Level::protected_ : Level::local,
                             {},
                             candidate.persistent});
  }
  if (found_commits.empty()) {
    unjudged.insert(found.strange.begin(), found.strange.end());
    // A lost node may come back. Pieces of a first checkpoint that a crash cut short are of no use to anybody.
    if (commits_exist) {
      for (const recovery::Candidate& candidate : survey.candidates) unjudged.insert(candidate.commit_id);
    }
  }
  took_stock = true;
  const std::lock_guard guard(commits_mutex);
  commits = std::move(found_commits);
  return agreement;
}

void Context::add(Commit commit) {
  const std::lock_guard guard(commits_mutex);
  if (std::ranges::find(commits, commit.commit_id, &Commit::commit_id) != commits.end()) return;
  const auto older = [&](const Commit& other) { return other.generation < commit.generation; };
  commits.insert(std::ranges::find_if(commits, older), std::move(commit));
}

std::optional<Commit> Context::find(std::string_view tag) const {
  const std::lock_guard guard(commits_mutex);
  const auto found = std::find_if(commits.begin(), commits.end(), [&](const Commit& one) { return one.tag == tag; });
  return found == commits.end() ? std::nullopt : std::optional(*found);
}

void Context::set_level(const Id128& commit_id, Level level, const Id128& protection_id) {
  const std::lock_guard guard(commits_mutex);
  for (Commit& commit : commits) {
    if (commit.commit_id != commit_id) continue;
    commit.level = level;
    commit.protection_id = protection_id;
  }
}

void Context::set_persistent(const Id128& commit_id, bool persistent) {
  const std::lock_guard guard(commits_mutex);
  for (Commit& commit : commits) {
    if (commit.commit_id == commit_id) commit.persistent = persistent;
  }
}

Level Context::level(std::string_view tag) const {
  const std::optional<Commit> commit = find(tag);
  if (!commit) return Level::none;
  return commit->persistent ? Level::persistent : commit->level;
}

void Context::note_first_commit(const Id128& commit_id) {
  commits_exist = true;
  if (!noted_in_store) {
    const auto failure = attempt([&] { records->note_commit(run_id); });
    noted_in_store = !failure.has_value();
    if (failure) {
      log.warning("the node-local store could not note that a commit exists (tried again at the next): " +
                  to_string(*failure));
    }
  }
  if (noted_on_prefix) return;
  std::optional<Failure> local;
  if (catalog) local = attempt([&] { catalog->note_first_commit(commit_id); });
  const auto failure = vote(local);
  noted_on_prefix = !failure.has_value();
  if (failure && is_root()) {
    log.warning("the prefix could not note that a commit exists (tried again at the next): " + to_string(*failure));
  }
}

void Context::retire() {
  std::map<Id128, Id128> keep;  // commit, and its protection if that is known
  for (const Id128& commit_id : unjudged) keep[commit_id] = {};
  if (!parent_commit_id.is_none()) keep[parent_commit_id] = {};
  {
    const std::lock_guard guard(commits_mutex);
    std::vector<Level> levels;
    for (const Commit& commit : commits) levels.push_back(commit.level);
    const std::vector<bool> stays = policy::kept(levels, options.store.keep);
    std::vector<Commit> remaining;
    for (std::size_t i = 0; i < commits.size(); ++i) {
      if (stays[i]) remaining.push_back(commits[i]);
      if (stays[i] || commits[i].commit_id == parent_commit_id) keep[commits[i].commit_id] = commits[i].protection_id;
    }
    commits = std::move(remaining);
  }
  const auto is_kept = [&](const store::FileKey& key) {
    const auto found = keep.find(key.commit_id);
    if (found == keep.end()) return false;
    return key.protection_id.is_none() || found->second.is_none() || found->second == key.protection_id;
  };
  if (const auto failure = attempt([&] { store->retire_all_but(is_kept); })) {
    log.warning("an older container could not be retired (tried again at the next commit): " + to_string(*failure));
  }
}

}  // namespace kedge::engine
