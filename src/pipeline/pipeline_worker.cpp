// How a pipeline starts its worker, and what holds that back.
#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "base/cores.hpp"
#include "base/text.hpp"
#include "comm/gentle_communicator.hpp"
#include "comm/sockets/join.hpp"
#include "kedge/transport.hpp"
#include "pipeline/pipeline.hpp"

namespace kedge::pipeline {

/// COLLECTIVE. What a worker sends on; without messages if there is nothing for it, and a warning has said why.
Pipeline::OpenChannel Pipeline::open_channel() const {
  const auto least =
      static_cast<ThreadSupport>(group_.min(static_cast<std::uint64_t>(group_.communicator().thread_support())));
  if (schedule_.messages == Messages::tcp) return {connect_over_tcp(), true};
  if (least == ThreadSupport::multiple) return {group_.communicator().duplicate(group_.deadline()), false};
  if (schedule_.messages == Messages::automatic && least != ThreadSupport::single) return {connect_over_tcp(), true};
  if (!group_.is_root()) return {};
  const std::string_view remedy = schedule_.messages == Messages::mpi
                                      ? "with MPI_THREAD_MULTIPLE, or set pipeline.messages to auto"
                                      : "with MPI_THREAD_FUNNELED or more, or set pipeline.messages = tcp";
  const std::string words = compose(
      "commits are protected and flushed inside the engine's calls; to do that in the background, initialize MPI by "
      "MPI_Init_thread {}",
      remedy);
  if (schedule_.mode == PipelineMode::automatic) log_.info(words);
  else log_.warning(words);
  return {};
}

/// COLLECTIVE. The ranks' own connections, where the application's message layer is not for this thread.
std::unique_ptr<Communicator> Pipeline::connect_over_tcp() const {
  if (group_.size() == 1) {
    auto alone = single_process();
    alone->connect(group_.deadline());
    return alone;
  }
  comm::Joined joined = comm::join_over_sockets(group_, schedule_.interface);
  if (group_.is_root() && joined.communicator) {
    log_.info(compose("background work sends over TCP, on {} ({})", joined.network,
                      schedule_.messages == Messages::tcp
                          ? "pipeline.messages = tcp"
                          : "without MPI_THREAD_MULTIPLE it cannot use the program's own messages"));
  }
  if (group_.is_root() && joined.failure) {
    log_.warning(
        compose("commits are protected and flushed inside the engine's calls: the ranks cannot reach each other over "
                "TCP ({}); name a network that all nodes share (pipeline.interface), initialize MPI with "
                "MPI_THREAD_MULTIPLE, or set pipeline.mode = inline",
                joined.failure->message));
  }
  return std::move(joined.communicator);
}

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
                      [this](const comm::Group& own) { return tend(own); }};
  try {
    worker_ = std::make_unique<Worker>(group_, Channel{gentle, channel.is_own}, begin, duties);
  } catch (const Error& error) {
    if (schedule_.mode != PipelineMode::automatic || error.code() != ErrorCode::no_space) throw;
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
