#include "pipeline/make_executor.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/cores.hpp"
#include "base/text.hpp"
#include "comm/throttled_communicator.hpp"
#include "fs/rate_limiter.hpp"
#include "pipeline/worker.hpp"

namespace kedge::pipeline {
namespace {

std::shared_ptr<fs::RateLimiter> make_rate_limiter(const ExecutorSettings& settings, std::size_t ranks_on_node,
                                                   Pause& pause, Clock& clock) {
  if (settings.bandwidth_limit == 0) return nullptr;
  const auto sharers = static_cast<double>(std::max<std::size_t>(ranks_on_node, 1));
  const double rate = static_cast<double>(settings.bandwidth_limit) / sharers;
  return std::make_shared<fs::RateLimiter>(
      clock, rate, [] {}, [&pause] { return pause.is_ended(); });
}

std::function<void()> choose_cores(const std::string& cores, const Log& log) {
  return [cores, log] {
    if (cores.empty() || bind_to_cores(parse_cores(cores).value_or(std::vector<unsigned>()))) return;
    log.warning(
        compose("pipeline.cores = \"{}\": none of these cores is available to this process; background work runs on "
                "the application's",
                cores));
  };
}

}  // namespace

std::unique_ptr<Executor> make_executor(const comm::Group& group, const ExecutorSettings& settings,
                                        std::size_t ranks_on_node, const ExecutorTasks& tasks, Pause& pause,
                                        Clock& clock, const Log& log) {
  OpenChannel channel;
  if (settings.channel.mode != PipelineMode::inline_) channel = open_channel(group, settings.channel, log);
  if (!channel.messages) return std::make_unique<InlineExecutor>(group, tasks);
  const std::shared_ptr<fs::RateLimiter> pace = make_rate_limiter(settings, ranks_on_node, pause, clock);
  pause.set_signal(channel.messages->signal());
  const auto before_sending = [&pause, pace](std::uint64_t sent_bytes) {
    pause.pass();
    if (pace && sent_bytes != 0) pace->pass(sent_bytes);
  };
  const comm::Group gentle(std::make_shared<comm::ThrottledCommunicator>(std::move(channel.messages), before_sending),
                           group.timeout());
  try {
    return std::make_unique<Worker>(group, Channel{gentle, channel.is_own, pace}, choose_cores(settings.cores, log),
                                    tasks);
  } catch (const Error& error) {
    if (settings.channel.mode != PipelineMode::automatic || error.code() != ErrorCode::no_space) throw;
    pause.set_signal(nullptr);
    if (group.is_root()) {
      log.warning(compose("commits are protected and flushed inside the engine's calls: {}", error.failure().message));
    }
  }
  return std::make_unique<InlineExecutor>(group, tasks);
}

}  // namespace kedge::pipeline
