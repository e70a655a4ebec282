// What tests of the engine over a simulated job say again and again.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "harness/simulated_job.hpp"

namespace kedge::faults {

/// What the call throws; nothing if it returns.
template <class Call>
[[nodiscard]] std::optional<Failure> failure_of(Call&& call) {
  try {
    std::forward<Call>(call)();
    return std::nullopt;
  } catch (const Error& error) {
    return error.failure();
  }
}

template <class Call>
[[nodiscard]] std::optional<ErrorCode> code_of(Call&& call) {
  const auto failure = failure_of(std::forward<Call>(call));
  return failure ? std::optional(failure->code) : std::nullopt;
}

[[nodiscard]] inline std::optional<ErrorCode> code_of_status(const Status& status) {
  return status.ok() ? std::nullopt : std::optional(status.failure().code);
}

[[nodiscard]] inline std::string text_of(const std::optional<Failure>& failure) {
  return failure ? to_string(*failure) : "success";
}

inline void expect_returned(const std::vector<testing::RankOutcome>& outcomes) {
  for (std::size_t rank = 0; rank < outcomes.size(); ++rank) {
    EXPECT_TRUE(outcomes[rank].returned())
        << "rank " << rank << ": " << (outcomes[rank].died ? "died" : text_of(outcomes[rank].failure));
  }
}

/// What each rank met in a collective call; must be the same on all.
class OnEachRank {
 public:
  explicit OnEachRank(int ranks) : failures_(static_cast<std::size_t>(ranks)) {}
  void put(int rank, std::optional<Failure> failure) { failures_[static_cast<std::size_t>(rank)] = std::move(failure); }
  /// The failure that all ranks met, after checking that it is the same to the letter.
  [[nodiscard]] std::optional<Failure> same() const {
    for (const auto& failure : failures_) EXPECT_EQ(text_of(failure), text_of(failures_.front()));
    return failures_.front();
  }

 private:
  std::vector<std::optional<Failure>> failures_;
};

/// Commits one int32 region "value".
inline void commit_value(Engine& engine, std::string_view tag, std::int32_t value) {
  State state;
  state.add("value", value);
  engine.checkpoint(tag, state);
}

/// Opens the newest and gives its tag and the region "value".
[[nodiscard]] inline std::pair<std::optional<Tag>, std::int32_t> restore_value(Engine& engine) {
  std::int32_t value = 0;
  State state;
  state.add("value", value);
  auto tag = engine.restore(state);
  return {std::move(tag), value};
}

/// Like SimulatedJob::start, with options of its own for each rank.
inline std::vector<testing::RankOutcome> start_each(
    SimulatedJob& job, const std::function<Options(int rank)>& options,
    const std::function<void(int rank, const std::function<Engine()>& make_engine)>& body) {
  testing::InProcessWorld world(job.ranks);
  auto clock = std::make_shared<FakeClock>();
  auto outcomes = world.run([&](int rank) {
    body(rank, [&, rank] {
      engine::EngineEnvironment environment;
      environment.file_system = job.disk.view(rank);
      environment.clock = clock;
      environment.ranks_per_node = job.ranks_per_node;
      return engine::EngineEnvironment::make_engine(world.communicator(rank), options(rank), environment);
    });
  });
  job.disk.restart();
  return outcomes;
}

}  // namespace kedge::faults
