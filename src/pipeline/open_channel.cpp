#include "pipeline/open_channel.hpp"

#include <string>
#include <string_view>
#include <utility>

#include "base/text.hpp"
#include "comm/sockets/join.hpp"
#include "kedge/transport.hpp"

namespace kedge::pipeline {
namespace {

/// COLLECTIVE. Connects the ranks over TCP, for workers that must not use the application's message layer.
std::unique_ptr<Communicator> connect_over_tcp(const comm::Group& group, const ChannelSettings& settings,
                                               const Log& log) {
  if (group.size() == 1) {
    auto alone = single_process();
    alone->connect(group.deadline());
    return alone;
  }
  comm::JoinResult joined = comm::join_over_sockets(group, settings.interface);
  if (group.is_root() && joined.communicator) {
    log.info(compose("background work sends over TCP, on {} ({})", joined.network,
                     settings.messages == Messages::tcp
                         ? "pipeline.messages = tcp"
                         : "without MPI_THREAD_MULTIPLE it cannot use the program's own messages"));
  }
  if (group.is_root() && joined.failure) {
    log.warning(
        compose("commits are protected and flushed inside the engine's calls: the ranks cannot reach each other over "
                "TCP ({}); name a network that all nodes share (pipeline.interface), initialize MPI with "
                "MPI_THREAD_MULTIPLE, or set pipeline.mode = inline",
                joined.failure->message));
  }
  return std::move(joined.communicator);
}

}  // namespace

OpenChannel open_channel(const comm::Group& group, const ChannelSettings& settings, const Log& log) {
  const auto least =
      static_cast<ThreadSupport>(group.min(static_cast<std::uint64_t>(group.communicator().thread_support())));
  if (settings.messages == Messages::tcp) return {connect_over_tcp(group, settings, log), true};
  if (least == ThreadSupport::multiple) return {group.communicator().duplicate(group.deadline()), false};
  if (settings.messages == Messages::automatic && least != ThreadSupport::single)
    return {connect_over_tcp(group, settings, log), true};
  if (!group.is_root()) return {};
  const std::string_view remedy = settings.messages == Messages::mpi
                                      ? "with MPI_THREAD_MULTIPLE, or set pipeline.messages to auto"
                                      : "with MPI_THREAD_FUNNELED or more, or set pipeline.messages = tcp";
  const std::string words = compose(
      "commits are protected and flushed inside the engine's calls; for background work, initialize MPI by "
      "MPI_Init_thread {}",
      remedy);
  if (settings.mode == PipelineMode::automatic) log.info(words);
  else log.warning(words);
  return {};
}

}  // namespace kedge::pipeline
