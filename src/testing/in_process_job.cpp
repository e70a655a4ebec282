#include "kedge/testing/in_process_job.hpp"

#include <chrono>
#include <cstddef>
#include <utility>

#include "base/text.hpp"
#include "kedge/error.hpp"

namespace kedge::testing {

InProcessJob::InProcessJob(int ranks, Options options)
    : InProcessJob(ranks, [same = std::move(options)](int) { return same; }) {}

InProcessJob::InProcessJob(int ranks, std::function<Options(int rank)> options)
    : ranks_(ranks), options_(std::move(options)) {
  if (ranks < 1) throw Error(ErrorCode::invalid_argument, compose("a job of {} ranks; give at least one", ranks));
  events_.resize(static_cast<std::size_t>(ranks));
}

void InProcessJob::stop_at(int rank, std::uint64_t event, StopKind kind) {
  if (rank < 0 || rank >= ranks_) {
    throw Error(ErrorCode::invalid_argument, compose("there is no rank {}; ranks are 0 to {}", rank, ranks_ - 1));
  }
  faults_.push_back({rank, event, kind});
}

std::vector<RankOutcome> InProcessJob::start(const Body& body) {
  InProcessWorld world(ranks_);
  for (const Fault& fault : std::exchange(faults_, {})) world.stop_at(fault.rank, fault.event, fault.kind);
  auto outcomes = world.run([&](int rank) {
    Engine engine(world.communicator(rank), options_(rank));
    const auto communicator = world.communicator(rank);
    communicator->connect(Deadline::after(std::chrono::hours(1)));  // virtual time: ends at once
    body(engine, *communicator);
  });
  for (int rank = 0; rank < ranks_; ++rank) events_[static_cast<std::size_t>(rank)] = world.events(rank);
  return outcomes;
}

}  // namespace kedge::testing
