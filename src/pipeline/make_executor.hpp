// Makes a worker, or an executor within the application's calls.
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

/// COLLECTIVE, on `group`. Makes a worker, unless options or system rule it out, which is logged with the remedy.
/// `ranks_on_node` share the limit. Messages are paced by `pause`.
[[nodiscard]] std::unique_ptr<Executor> make_executor(const comm::Group& group, const ExecutorSettings& settings,
                                                      std::size_t ranks_on_node, const ExecutorTasks& tasks,
                                                      Pause& pause, Clock& clock, const Log& log);

}  // namespace kedge::pipeline
