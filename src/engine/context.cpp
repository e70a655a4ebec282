#include "engine/context.hpp"

#include <algorithm>

#include "base/attempt.hpp"
#include "base/text.hpp"

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

void Context::note_first_commit(const Id128& commit_id) {
  ledger.note_commits_exist();
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

}  // namespace kedge::engine
