#include "pipeline/make_executor.hpp"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "base/cores.hpp"
#include "base/text.hpp"
#include "comm/sockets/join.hpp"
#include "comm/throttled_communicator.hpp"
#include "fs/rate_limiter.hpp"
#include "kedge/transport.hpp"
#include "pipeline/worker.hpp"

namespace kedge::pipeline {
namespace {

std::shared_ptr<fs::RateLimiter> make_rate_limiter(const ExecutorSettings& settings, std::size_t ranks_on_node,
                                                   BackgroundPause& pause, Clock& clock) {
  if (settings.bandwidth_limit == 0) return nullptr;
  const auto sharers = static_cast<double>(std::max<std::size_t>(ranks_on_node, 1));
  const double rate = static_cast<double>(settings.bandwidth_limit) / sharers;
  return std::make_shared<fs::RateLimiter>(
      clock, rate, [] {}, [&pause] { return pause.is_ended(); });
}

std::function<void()> bind_to_option_cores(const std::string& cores, const Log& log) {
  return [cores, log] {
    if (cores.empty() || bind_to_cores(parse_cores(cores).value_or(std::vector<unsigned>()))) return;
    log.warning(
        compose("pipeline.cores = \"{}\": none of these cores is available to this process; background work runs on "
                "the application's",
                cores));
  };
}

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

std::unique_ptr<Executor> make_executor(const comm::Group& group, const ExecutorSettings& settings,
                                        std::size_t ranks_on_node, const ExecutorTasks& tasks, BackgroundPause& pause,
                                        Clock& clock, const Log& log) {
  OpenChannel channel;
  if (settings.channel.mode != PipelineMode::inline_) channel = open_channel(group, settings.channel, log);
  if (!channel.messages) return std::make_unique<InlineExecutor>(group, tasks);
  const std::shared_ptr<fs::RateLimiter> pace = make_rate_limiter(settings, ranks_on_node, pause, clock);
  pause.set_signal(channel.messages->signal());
  const auto before_sending = [&pause, pace](std::uint64_t sent_bytes) {
    pause.wait_while_paused();
    if (pace && sent_bytes != 0) pace->acquire(sent_bytes);
  };
  const comm::Group gentle(std::make_shared<comm::ThrottledCommunicator>(std::move(channel.messages), before_sending),
                           group.timeout());
  try {
    return std::make_unique<Worker>(group, Channel{gentle, channel.is_own, pace},
                                    bind_to_option_cores(settings.cores, log), tasks);
  } catch (const Error& error) {
    if (settings.channel.mode != PipelineMode::automatic || error.code() != ErrorCode::no_space) throw;
    pause.set_signal(nullptr);
    if (group.is_root()) {
      log.warning(compose("commits are protected and flushed inside the engine's calls: {}", error.failure().message));
    }
  }
  return std::make_unique<InlineExecutor>(group, tasks);
}

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
