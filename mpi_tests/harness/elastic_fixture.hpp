// What tests of another number of ranks say again and again: save with so many, restore with so many.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "harness/elastic_program.hpp"
#include "harness/outputs_fixture.hpp"
#include "harness/several_starts.hpp"

namespace kedge::faults {

class ElasticFixture : public OutputsFixture {
 protected:
  using Body = std::function<void(Engine&, RankScope&)>;

  static void start(SimulatedJob& job, int ranks, const Body& body) {
    job.ranks = ranks;
    expect_all_returned(job.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      body(engine, scope);
    }));
  }

  static void commit(Engine& engine, const RankScope& scope, const Tag& tag, int step) {
    ElasticProgram program(scope.rank, scope.ranks);
    program.set(step);
    engine.checkpoint(tag, program.state());
  }

  static void save(SimulatedJob& job, int ranks, const Tag& tag, int step) {
    start(job, ranks, [&](Engine& engine, RankScope& scope) {
      ElasticProgram program(scope.rank, scope.ranks);
      (void)engine.restore(program.state());
      program.set(step);
      engine.checkpoint(tag, program.state());
      engine.finalize();
    });
  }

  /// COLLECTIVE.
  static void expect_restored(Engine& engine, const RankScope& scope, int step, int saved_by,
                              ElasticProgram::Found& found, const Selection& selection = latest) {
    ElasticProgram program(scope.rank, scope.ranks);
    ASSERT_TRUE(engine.restore(program.state(), selection));
    EXPECT_EQ(engine.info().world_size, static_cast<std::uint32_t>(saved_by));
    program.expect(step, saved_by, found);
  }

  /// Nobody died but this rank.
  static bool only_died(const std::vector<testing::RankOutcome>& outcomes, int rank) {
    for (std::size_t other = 0; other < outcomes.size(); ++other) {
      if (outcomes[other].died && other != static_cast<std::size_t>(rank)) return false;
    }
    return true;
  }

  static void expect_restored(SimulatedJob& job, int ranks, int step, int saved_by,
                              const Selection& selection = latest) {
    ElasticProgram::Found found;
    start(job, ranks, [&](Engine& engine, RankScope& scope) {
      expect_restored(engine, scope, step, saved_by, found, selection);
      engine.finalize();
    });
    ElasticProgram::expect_whole(found, step, saved_by);
  }
};

}  // namespace kedge::faults
