#include "engine/context.hpp"

#include <algorithm>

#include "base/attempt.hpp"
#include "base/text.hpp"
#include "commits/retention.hpp"

namespace kedge::engine {
namespace {

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

std::vector<bool> stay(const std::vector<Commit>& newest_first, std::uint32_t keep) {
  std::vector<Level> levels;
  levels.reserve(newest_first.size());
  for (const Commit& commit : newest_first) levels.push_back(commit.level);
  return commits::kept(levels, keep);
}

void Context::add(Commit commit) {
  const std::lock_guard guard(commits_mutex);
  if (std::ranges::any_of(commits, [&](const Commit& one) { return one.head.id == commit.head.id; })) return;
  const auto older = [&](const Commit& other) { return is_newer(commit.head, other.head); };
  commits.insert(std::ranges::find_if(commits, older), std::move(commit));
}

std::optional<Commit> Context::find(std::string_view tag) const {
  const std::lock_guard guard(commits_mutex);
  const auto found =
      std::find_if(commits.begin(), commits.end(), [&](const Commit& one) { return one.head.tag == tag; });
  return found == commits.end() ? std::nullopt : std::optional(*found);
}

void Context::set_level(const Id128& commit_id, Level level, const Id128& protection_id) {
  const std::lock_guard guard(commits_mutex);
  for (Commit& commit : commits) {
    if (commit.head.id != commit_id) continue;
    commit.level = level;
    commit.protection_id = protection_id;
  }
}

void Context::set_persistent(const Id128& commit_id, bool persistent) {
  const std::lock_guard guard(commits_mutex);
  for (Commit& commit : commits) {
    if (commit.head.id == commit_id) commit.persistent = persistent;
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
    const std::vector<bool> stays = stay(commits, options.store.keep);
    std::vector<Commit> remaining;
    for (std::size_t i = 0; i < commits.size(); ++i) {
      if (stays[i]) remaining.push_back(commits[i]);
      if (stays[i] || commits[i].head.id == parent_commit_id) keep[commits[i].head.id] = commits[i].protection_id;
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
