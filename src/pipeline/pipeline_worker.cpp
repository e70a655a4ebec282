// How a pipeline starts its worker.
#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "base/cores.hpp"
#include "base/text.hpp"
#include "comm/gentle_communicator.hpp"
#include "pipeline/pipeline.hpp"

namespace kedge::pipeline {

/// COLLECTIVE. What it sends waits for the application where that asks for it.
void Pipeline::start_worker(OpenChannel channel) {
  if (schedule_.sent_bytes_per_s != 0) {
    const auto sharers = static_cast<double>(std::max<std::size_t>(store_.ranks_on_node().size(), 1));
    send_pace_ = std::make_unique<fs::Pace>(
        clock_, static_cast<double>(schedule_.sent_bytes_per_s) / sharers, [] {}, [this] { return pause_.is_ended(); });
  }
  pause_.tell_by(channel.messages->signal());
  const auto before = [this](std::uint64_t sent_bytes) {
    pause_.pass();
    if (send_pace_ && sent_bytes != 0) send_pace_->pass(sent_bytes);
  };
  const comm::Group gentle(std::make_shared<comm::GentleCommunicator>(std::move(channel.messages), before),
                           group_.timeout());
  const auto begin = [this] {
    if (schedule_.cores.empty() || keep_to_cores(parse_cores(schedule_.cores).value_or(std::vector<unsigned>())))
      return;
    log_.warning(
        compose("pipeline.cores = \"{}\": none of these cores is available to this process; background "
                "work runs on the application's",
                schedule_.cores));
  };
  const Duties duties{[this](const comm::Group& own, Job& job) { work(own, job); },
                      [this](const comm::Group& own) { tidy(own); },
                      [this](const comm::Group& own) { return run_upkeep_step(own); }};
  try {
    worker_ = std::make_unique<Worker>(group_, Channel{gentle, channel.is_own}, begin, duties);
  } catch (const Error& error) {
    if (schedule_.channel.mode != PipelineMode::automatic || error.code() != ErrorCode::no_space) throw;
    pause_.tell_by(nullptr);
    if (group_.is_root()) {
      log_.warning(compose("commits are protected and flushed inside the engine's calls: {}", error.failure().message));
    }
  }
}

/// COLLECTIVE, if what is sent has a limit: the rank that this keeps back longest takes its time.
comm::Group Pipeline::patient(const comm::Group& group, std::uint64_t own_bytes) const {
  if (!send_pace_ || !worker_) return group;
  const double sent_bytes = static_cast<double>(own_bytes) * protect_->sent_share();
  const double paced_s = send_pace_->seconds_for(static_cast<std::uint64_t>(sent_bytes));
  return group.with_timeout(group.timeout() +
                            std::chrono::milliseconds(group.max(static_cast<std::uint64_t>(paced_s * 1000))));
}

}  // namespace kedge::pipeline
