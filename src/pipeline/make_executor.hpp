// Chooses who does the work on commits: a worker, or the application's calls.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "comm/group.hpp"
#include "pipeline/executor.hpp"
#include "pipeline/open_channel.hpp"
#include "pipeline/pause.hpp"

namespace kedge::pipeline {

struct ExecutorSettings {
  ChannelSettings channel;
  std::string cores = {};             ///< on which a worker runs; empty: on any
  std::uint64_t bandwidth_limit = 0;  ///< bytes per second that the workers of a node send; 0: without limit
};

/// COLLECTIVE, on `group`. A worker, unless the options or the system rule it out: then the log says why, and what to
/// do. `ranks_on_node` share the limit. What the worker sends waits for the application where `pause` asks for it.
[[nodiscard]] std::unique_ptr<Executor> make_executor(const comm::Group& group, const ExecutorSettings& settings,
                                                      std::size_t ranks_on_node, const Duties& duties, Pause& pause,
                                                      Clock& clock, const Log& log);

}  // namespace kedge::pipeline
