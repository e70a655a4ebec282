// A job of four ranks that is to end: signals that come to one rank alone, clocks that differ, flushes that take time.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/text.hpp"
#include "harness/blocking_file_system.hpp"
#include "harness/flush_fixture.hpp"
#include "harness/forwarding_file_system.hpp"
#include "harness/several_starts.hpp"

namespace kedge::faults {

/// The clock of one rank: all have the same seconds, and not the same date.
class SkewedClock final : public Clock {
 public:
  SkewedClock(std::shared_ptr<Clock> inner, double skew_s) : inner_(std::move(inner)), skew_s_(skew_s) {}
  std::int64_t wall_ns() override { return inner_->wall_ns() + static_cast<std::int64_t>(skew_s_ * 1e9); }
  double seconds() override { return inner_->seconds(); }
  void sleep_for(std::chrono::duration<double> wait) override { inner_->sleep_for(wait); }

 private:
  std::shared_ptr<Clock> inner_;
  double skew_s_;
};

/// A prefix on which a manifest takes its time.
class SlowToPublish final : public ForwardingFileSystem {
 public:
  SlowToPublish(std::shared_ptr<fs::FileSystem> inner, std::shared_ptr<Clock> clock, double seconds)
      : ForwardingFileSystem(std::move(inner)), clock_(std::move(clock)), seconds_(seconds) {}
  void rename(const std::string& from, const std::string& to) override {
    if (to.starts_with("/prefix/") && to.ends_with("/checkpoint.h5")) {
      clock_->sleep_for(std::chrono::duration<double>(seconds_));
    }
    inner().rename(from, to);
  }

 private:
  std::shared_ptr<Clock> clock_;
  double seconds_;
};

/// What became of an application's loop; the same on every rank.
struct Loop {
  std::vector<int> saved;
  int last_step = 0;
  double begun_s = 0;  ///< the last checkpoint, by the clock of all
  Level level_of_last = Level::none;
};

/// No schedule asks for checkpoints, and every commit is protected.
struct JobWithDeadline : PersistentJob {
  JobWithDeadline() : PersistentJob(4) {
    options.schedule = {0, 0, 0};
    options.pipeline.mode = PipelineMode::inline_;  // whatever KEDGE_TEST_PIPELINE says: levels are looked at
    surroundings = [this](int rank, engine::EngineEnvironment& environment) {
      environment.clock = rank == 0 ? clock : std::shared_ptr<Clock>(std::make_shared<SkewedClock>(clock, skew_s));
      environment.waits_for_worker = false;
      environment.file_system = std::make_shared<SlowToPublish>(environment.file_system, clock, flush_s);
      if (gate) environment.file_system = std::make_shared<BlockingFileSystem>(environment.file_system, *gate);
      environment.find_variable = [this, rank](const std::string& name) -> std::optional<std::string> {
        const auto& own = rank == 0 ? variables : others_variables;
        const auto found = own.find(name);
        return found == own.end() ? std::nullopt : std::optional(found->second);
      };
      if (real_signals) environment.watch_signals = start::Environment::system().watch_signals;
      else
        environment.watch_signals = [this, rank](const auto&, const auto&) {
          return [this, rank] { return signals.at(static_cast<std::size_t>(rank)).load(); };
        };
    };
  }

  /// That many seconds after the first start, as an option or a variable says it.
  [[nodiscard]] static std::string moment(int seconds) { return compose("{}", 1'700'000'000 + seconds); }

  /// One start whose loop is the one that users are shown. `work` is called in each step before need_checkpoint.
  Loop run_loop(int steps, const std::function<void(int rank, int step)>& work = {}) {
    std::vector<Loop> loops(4);
    expect_all_returned(start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      Loop& loop = loops.at(static_cast<std::size_t>(scope.rank));
      Tag last;
      for (int step = 1; step <= steps; ++step) {
        loop.last_step = step;
        if (work) work(scope.rank, step);
        if (engine.need_checkpoint()) {
          loop.begun_s = clock->seconds();
          last = compose("step-{}", step);
          commit_step(engine, scope.rank, last, step);
          loop.saved.push_back(step);
          loop.level_of_last = engine.level(last);
        }
        if (engine.should_exit()) break;
      }
      if (options.pipeline.mode == PipelineMode::inline_) return;
      engine.finalize();
      loop.level_of_last = engine.level(last);
    }));
    for (const Loop& loop : loops) {
      EXPECT_EQ(loop.saved, loops.front().saved);
      EXPECT_EQ(loop.last_step, loops.front().last_step);
      EXPECT_EQ(loop.level_of_last, loops.front().level_of_last);
    }
    return loops.front();
  }

  std::shared_ptr<FakeClock> clock = std::make_shared<FakeClock>();
  std::array<std::atomic<int>, 4> signals{};
  double skew_s = 0;                             ///< of the date of all but rank 0
  double flush_s = 0;                            ///< that a flush takes
  Gate* gate = nullptr;                          ///< holds up what goes to the prefix
  std::map<std::string, std::string> variables;  ///< of rank 0's environment
  std::map<std::string, std::string> others_variables;
  bool real_signals = false;  ///< those of this process
};

}  // namespace kedge::faults
