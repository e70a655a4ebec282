// Jobs with a worker, whose files can be held up, and what an open leaves to be done in the background.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "harness/blocking_file_system.hpp"
#include "harness/blocking_files.hpp"
#include "harness/engine_checks.hpp"
#include "harness/flush_fixture.hpp"
#include "harness/set_files.hpp"

namespace kedge::faults {

inline bool is_parity(const std::string& path) {
  return path.starts_with("/nodes/") && path.find("/parity-") != std::string::npos;
}

/// Opens a gate when it is told to, or after five seconds: whoever waits in vain waits no longer.
class LateOpener {
 public:
  explicit LateOpener(Gate& gate)
      : thread_([&gate](const std::stop_token& stop) {
          for (int turn = 0; turn < 500 && !stop.stop_requested(); ++turn) {
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
          }
          gate.open();
        }) {}
  void open() { thread_.request_stop(); }

 private:
  std::jthread thread_;
};

/// The stores are on disks, so that files are read by calls, which `holds` sees.
class DeferredWorkFixture : public FlushFixture {
 protected:
  DeferredWorkFixture() { prepare(job); }

  void prepare(SimulatedJob& one) {
    one.options.persistent.every = 0;
    one.options.pipeline.mode = PipelineMode::background;
    one.options.redundancy.scheme = Scheme::xor_;
    one.surroundings = [this](int /*rank*/, engine::EngineEnvironment& environment) {
      environment.waits_for_worker = false;
      environment.file_system = std::make_shared<BlockingFiles>(environment.file_system, holds);
    };
  }
  /// Commits these, each protected.
  void commit_protected(const Steps& steps) { commit_protected(job, steps); }
  static void commit_protected(SimulatedJob& one, const Steps& steps) {
    expect_all_returned(one.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      for (const auto& [tag, step] : steps) {
        commit_step(engine, scope.rank, tag, step);
        engine.wait(tag, Level::protected_);
      }
      engine.finalize();
    }));
  }
  /// One byte behind the header.
  void flip_parity(int rank, const Tag& tag) {
    job.disk.flip_bit(set_file_of(job.disk, format::SetFileKind::parity, rank, tag), 4096 + 1000);
  }
  void block_reads() {
    gate.close();
    holds.reading = [this](const std::string& path) {
      if (is_parity(path)) gate.pass();
    };
  }
  /// COLLECTIVE. Opens "a"; the worker of each rank then waits at the gate.
  void open_with_blocked_reads(Engine& engine, int rank) {
    EXPECT_EQ(engine.open(), "a");
    engine.close();
    once(engine, rank, [&] { gate.await(4); });
  }
  void block_new_parity() {
    gate.close();
    holds.making = [this](const std::string& path) {
      if (is_parity(path)) gate.pass();
    };
  }
  /// So many wait at the gate, which nobody had to open for whoever waits for them.
  void await_blocked(int arrived) {
    EXPECT_FALSE(gate.is_open()) << "something waited for what is held";
    if (!gate.is_open()) gate.await(arrived);
  }
  /// What a start opens after it has lost these nodes.
  void expect_recovers(const std::vector<int>& lost, const Tag& tag, int step) {
    const auto before = job.disk.snapshot();
    lose_stores(job, lost);
    const Opened opened = reopen(job);
    EXPECT_EQ(opened.tag, tag) << faults::text_of(opened.failure);
    EXPECT_EQ(opened.step, step);
    EXPECT_EQ(opened.info.source, RecoverySource::rebuilt);
    job.disk.restore(before);
  }
  [[nodiscard]] std::size_t lines_with(std::string_view part) const {
    const auto lines = job.log();
    return static_cast<std::size_t>(
        std::ranges::count_if(lines, [&](const std::string& line) { return line.find(part) != std::string::npos; }));
  }

  Gate gate;
  BlockedCalls holds;
  PersistentJob job{4, SimulatedJob::block_disk()};
};

}  // namespace kedge::faults
