// Opens a worker's message channel: the program's message layer, or Kedge's own connections.
#pragma once

#include <memory>
#include <string>

#include "base/log.hpp"
#include "comm/group.hpp"
#include "kedge/communicator.hpp"
#include "kedge/options.hpp"

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

}  // namespace kedge::pipeline
