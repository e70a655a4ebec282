#include "engine/context.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/attempt.hpp"
#include "base/text.hpp"

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
  std::vector<recovery::Holding> holdings;
  std::string unreadable;
  std::vector<Id128> strange;  ///< commits of another run
  std::uint64_t highest_generation = 0;
};

Found look(Context& context, Verify verify) {
  Found found;
  found.highest_generation = context.store->highest_generation();
  for (const store::Held& held : context.store->scan(context.run_id, verify)) {
    const bool names_a_commit = held.superblock && held.superblock->run_id == context.run_id &&
                                held.superblock->logical_rank.value == static_cast<std::uint32_t>(context.rank());
    if (names_a_commit) {
      found.holdings.push_back(holding_of(held));
      continue;
    }
    if (held.superblock && held.superblock->run_id != context.run_id) {
      found.strange.push_back(held.superblock->commit_id);
    }
    if (!held.damage.empty() && found.unreadable.empty()) found.unreadable = held.damage;
  }
  return found;
}

/// COLLECTIVE. Candidates that the run record or this engine ruled out are not recoverable.
void rule_out(Context& context, recovery::Survey& survey) {
  std::vector<std::byte> discarded(survey.candidates.size());
  std::optional<Failure> local;
  if (context.catalog) {
    local = attempt([&] {
      for (std::size_t i = 0; i < discarded.size(); ++i) {
        discarded[i] = std::byte{context.catalog->is_discarded(survey.candidates[i].commit_id)};
      }
    });
  }
  comm::throw_if(context.vote(local));
  if (!discarded.empty()) context.comm->broadcast(discarded, 0, context.deadline());
  for (std::size_t i = 0; i < discarded.size(); ++i) {
    recovery::Candidate& candidate = survey.candidates[i];
    if (discarded[i] != std::byte{0}) candidate.reason = "it was discarded when an older one was opened";
    else if (context.excluded.contains(candidate.commit_id))
      candidate.reason = "it was found damaged while it was loaded";
    else continue;
    candidate.recoverable = false;
  }
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

recovery::Survey Context::take_stock(Verify verify) {
  Found found;
  const auto local = attempt([&] { found = look(*this, verify); });
  comm::throw_if(vote(local));
  recovery::Survey survey = recovery::survey(*comm, found.holdings, {store->folder(), found.unreadable}, deadline());
  rule_out(*this, survey);

  std::uint64_t highest = std::max(found.highest_generation, highest_generation);
  comm->all_reduce(std::span(&highest, 1), Reduction::max, deadline());
  highest_generation = std::max(highest, incarnation * kGenerationsPerIncarnation);

  std::vector<Commit> found_commits;
  unjudged.clear();
  const auto processes = static_cast<std::uint32_t>(comm->size());
  for (const recovery::Candidate& candidate : survey.candidates) {
    // Older ones than what this job can have again are superseded like any other.
    if (candidate.world_size != processes && found_commits.empty()) unjudged.insert(candidate.commit_id);
    if (!candidate.recoverable) continue;
    found_commits.push_back({candidate.generation, candidate.commit_id, candidate.tag, Level::local});
  }
  if (found_commits.empty()) unjudged.insert(found.strange.begin(), found.strange.end());
  took_stock = true;
  const std::lock_guard guard(commits_mutex);
  commits = std::move(found_commits);
  return survey;
}

void Context::add(Commit commit) {
  const std::lock_guard guard(commits_mutex);
  commits.insert(commits.begin(), std::move(commit));
}

Level Context::level(std::string_view tag) const {
  const std::lock_guard guard(commits_mutex);
  const auto found = std::find_if(commits.begin(), commits.end(), [&](const Commit& one) { return one.tag == tag; });
  return found == commits.end() ? Level::none : found->level;
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
  std::set<Id128> keep = unjudged;
  if (!parent_commit_id.is_none()) keep.insert(parent_commit_id);
  {
    const std::lock_guard guard(commits_mutex);
    if (commits.size() > options.store.keep) commits.resize(options.store.keep);
    for (const Commit& commit : commits) keep.insert(commit.commit_id);
  }
  if (const auto failure = attempt([&] { store->retire_all_but(keep); })) {
    log.warning("an older container could not be retired (tried again at the next commit): " + to_string(*failure));
  }
}

}  // namespace kedge::engine
