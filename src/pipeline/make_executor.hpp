// Makes a worker, or an executor within the application's calls.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "comm/group.hpp"
#include "kedge/communicator.hpp"
#include "kedge/options.hpp"
#include "pipeline/background_pause.hpp"
#include "pipeline/executor.hpp"

namespace kedge::pipeline {

/// The options pipeline.mode, pipeline.messages and pipeline.interface.
struct ChannelSettings {
  PipelineMode mode = PipelineMode::inline_;
  Messages messages = Messages::automatic;
  std::string interface = {};
};

struct OpenChannel {
  std::unique_ptr<Communicator> messages;  ///< null if no worker is possible
  bool is_own = false;                     ///< over Kedge's own connections
};

/// COLLECTIVE, on `group`. If there is no channel, the log says why and what to do. Throws what ends communication.
[[nodiscard]] OpenChannel open_channel(const comm::Group& group, const ChannelSettings& settings, const Log& log);

struct ExecutorSettings {
  ChannelSettings channel;
  std::string cores = {};             ///< cores for the worker; empty: any
  std::uint64_t bandwidth_limit = 0;  ///< bytes per second that the workers of a node send; 0: without limit
};

/// COLLECTIVE, on `group`. Makes a worker, unless options or system rule it out, which is logged with the remedy.
/// `ranks_on_node` share the limit. Messages are paced by `pause`.
[[nodiscard]] std::unique_ptr<Executor> make_executor(const comm::Group& group, const ExecutorSettings& settings,
                                                      std::size_t ranks_on_node, const ExecutorTasks& tasks,
                                                      BackgroundPause& pause, Clock& clock, const Log& log);

}  // namespace kedge::pipeline
