// What an engine works with that the public interface does not ask for; tests give it something else.
#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "kedge/engine.hpp"
#include "pipeline/stage_list.hpp"
#include "start/environment.hpp"

namespace kedge::engine {

struct EngineEnvironment : start::Environment {
  EngineEnvironment() = default;
  EngineEnvironment(start::Environment environment) : start::Environment(std::move(environment)) {}

  /// commit() returns when the worker has done what it had to: a test sees what happened, whichever thread did it.
  bool waits_for_worker = false;
  /// Stages that commits go through after those of the engine. The same on every rank.
  std::function<std::vector<pipeline::StageWithPolicy>()> more_stages = [] {
    return std::vector<pipeline::StageWithPolicy>();
  };

  /// COLLECTIVE. Engine's constructor, in this environment.
  [[nodiscard]] static Engine make_engine(std::unique_ptr<Communicator> communicator, Options options,
                                          const EngineEnvironment& environment);
};

}  // namespace kedge::engine
