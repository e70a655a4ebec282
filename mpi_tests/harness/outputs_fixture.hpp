// Jobs that put out data beside their checkpoints.
#pragma once

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdint>
#include <span>
#include <vector>

#include "harness/flush_fixture.hpp"
#include "harness/several_starts.hpp"

namespace kedge::faults {

/// COLLECTIVE. As commit_step.
inline void write_output(Engine& engine, int rank, const Tag& tag, int step) {
  engine.create_output(tag, {{"step", std::int64_t{step}}});
  const std::vector<double> plot(100 + static_cast<std::size_t>(rank), step);
  EXPECT_TRUE(engine.save("plot", region(std::span(plot))));
  engine.commit();
}

class OutputsFixture : public FlushFixture {
 protected:
  /// Letters of a tag say what is made: "p…" an output, anything else a checkpoint.
  static void make(SimulatedJob& job, const Steps& steps, bool finalize = false) {
    expect_all_returned(job.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      if (engine.open()) engine.close();
      for (const auto& [tag, step] : steps) {
        if (tag.starts_with("p")) write_output(engine, scope.rank, tag, step);
        else commit_step(engine, scope.rank, tag, step);
      }
      if (finalize) engine.finalize();
    }));
  }
  static Volume full() {
    Volume volume;
    volume.write_errno = ENOSPC;
    return volume;
  }
};

}  // namespace kedge::faults
