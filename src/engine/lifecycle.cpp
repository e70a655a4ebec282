#include "engine/lifecycle.hpp"

#include <algorithm>

#include "base/invariant.hpp"
#include "base/text.hpp"

namespace kedge::engine {
namespace {

std::string_view phase_name(Phase phase) {
  switch (phase) {
    case Phase::idle: return "no checkpoint is being written or open (call create or open first)";
    case Phase::writing: return "a checkpoint is being written (commit or abandon it first)";
    case Phase::reading: return "a checkpoint is open (close it first)";
    case Phase::finished: return "the engine was finalized";
  }
  return "unknown";
}

Failure bad_state(std::string message) { return Failure{ErrorCode::bad_state, std::move(message)}; }

}  // namespace

void Lifecycle::move_to(Phase next) {
  const bool by_idle = phase_ == Phase::idle || next == Phase::idle;
  invariant(phase_ != Phase::finished && (by_idle || next == Phase::finished),
            "a phase follows idle, or idle follows it");
  phase_ = next;
}

std::optional<Failure> Lifecycle::ended() const {
  if (!is_own_process()) {
    return bad_state(
        "this engine belongs to the parent process; do not use it here, or make another engine with a run of its own");
  }
  if (is_dead() && phase_ == Phase::finished) {
    return bad_state(compose("this engine was finalized ({}); end the job", *dead_because_));
  }
  if (is_dead()) return bad_state(compose("this engine is dead ({}); end the job and start it again", *dead_because_));
  if (phase_ == Phase::finished) return bad_state("this engine was finalized; create a new one");
  return std::nullopt;
}

std::optional<Failure> Lifecycle::check_phase(comm::Call call, std::initializer_list<Phase> fitting) const {
  if (std::ranges::find(fitting, phase_) != fitting.end()) return std::nullopt;
  return bad_state(compose("{} was called out of order: {}", to_string(call), phase_name(phase_)));
}

std::optional<Failure> Lifecycle::check_phase(std::string_view call, Phase fitting, std::string_view first) const {
  if (auto failure = ended()) return failure;
  if (phase_ == fitting) return std::nullopt;
  return bad_state(compose("{} was called out of order: call {} first", call, first));
}

}  // namespace kedge::engine
