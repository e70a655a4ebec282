// What finalize says of the run's checkpoints on the prefix: how many, how large, and which option limits them.
#include <gmock/gmock.h>

#include <cerrno>
#include <functional>
#include <string>
#include <vector>

#include "base/text.hpp"
#include "harness/flush_fixture.hpp"
#include "harness/several_starts.hpp"

namespace kedge::faults::what_is_persistent_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class WhatIsPersistent : public FlushFixture {
 protected:
  /// A start that goes on from the newest, commits these and ends.
  static void end(SimulatedJob& job, const Steps& steps,
                  const std::function<void(Engine&, int rank)>& before_the_end = {}) {
    expect_all_returned(job.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      if (engine.open()) engine.close();
      for (const auto& [tag, step] : steps) commit_step(engine, scope.rank, tag, step);
      if (before_the_end) before_the_end(engine, scope.rank);
      engine.finalize();
    }));
  }
  /// The lines about it, of all ranks, since it was asked last.
  [[nodiscard]] std::vector<std::string> told(const SimulatedJob& job) {
    std::vector<std::string> lines;
    for (const std::string& line : job.log()) {
      const auto found = line.find("on the prefix: ");
      if (found != std::string::npos) lines.push_back(line.substr(found));
    }
    lines.erase(lines.begin(), lines.begin() + static_cast<std::ptrdiff_t>(known_));
    known_ += lines.size();
    return lines;
  }
  /// The containers in the directories of these tags.
  [[nodiscard]] static std::string size_of(SimulatedJob& job, const std::vector<Tag>& tags) {
    std::uint64_t bytes = 0;
    for (const Tag& tag : tags) {
      for (int rank = 0; rank < job.ranks; ++rank)
        bytes += job.disk.read_all(container_of(job, tag, static_cast<std::uint32_t>(rank))).size();
    }
    return human_bytes(bytes);
  }

 private:
  std::size_t known_ = 0;
};

TEST_F(WhatIsPersistent, AllAreKeptUnlessKeepSaysOtherwise) {
  PersistentJob job(3);
  end(job, {{"a", 1}});
  EXPECT_THAT(told(job), ElementsAre(compose("on the prefix: 1 checkpoint of this run, {} (persistent.keep = 0: all "
                                             "are kept)",
                                             size_of(job, {"a"}))));
  end(job, {{"b", 2}, {"c", 3}});
  EXPECT_THAT(told(job), ElementsAre(compose("on the prefix: 3 checkpoints of this run, {} (persistent.keep = 0: all "
                                             "are kept)",
                                             size_of(job, {"a", "b", "c"}))));
}

TEST_F(WhatIsPersistent, NoMoreThanKeepAndWhatIsPinned) {
  PersistentJob job(2);
  job.options.persistent.keep = 2;
  end(job, {{"a", 1}, {"b", 2}, {"c", 3}, {"d", 4}});
  EXPECT_THAT(told(job), ElementsAre(compose("on the prefix: 2 checkpoints of this run, {} (persistent.keep = 2)",
                                             size_of(job, {"c", "d"}))));
  job.options.persistent.keep = 1;
  end(job, {}, [](Engine& engine, int) {
    engine.pin("c");
    State state;
    std::vector<double> large(100'000);
    engine.checkpoint("e", state.add("large", large));
  });
  EXPECT_THAT(told(job), ElementsAre(compose("on the prefix: 2 checkpoints of this run, {} (persistent.keep = 1)",
                                             size_of(job, {"c", "e"}))));
}

TEST_F(WhatIsPersistent, OfThisRunAlone) {
  PersistentJob job(2);
  end(job, {{"a", 1}, {"b", 2}});
  (void)told(job);
  job.options.run = "other";
  job.options.store.path = "/nodes/{node}/other";
  job.options.persistent.keep = 5;
  end(job, {{"z", 7}});
  EXPECT_THAT(told(job), ElementsAre(compose("on the prefix: 1 checkpoint of this run, {} (persistent.keep = 5)",
                                             size_of(job, {"z"}))));
  job.options.run = "test";
  job.options.store.path = "/nodes/{node}";
  end(job, {});
  EXPECT_THAT(told(job), ElementsAre(compose("on the prefix: 2 checkpoints of this run, {} (persistent.keep = 5)",
                                             size_of(job, {"a", "b"}))));
}

TEST_F(WhatIsPersistent, WhatFinalizeItselfFlushesCounts) {
  PersistentJob job(2);
  job.options.persistent.every = 10;
  end(job, {{"a", 1}, {"b", 2}});
  EXPECT_THAT(told(job), ElementsAre(compose("on the prefix: 1 checkpoint of this run, {} (persistent.keep = 0: all "
                                             "are kept)",
                                             size_of(job, {"b"}))));
}

TEST_F(WhatIsPersistent, NothingIsSaidOfNothingAndOfWhatCannotBeListed) {
  PersistentJob job(2);
  job.options.persistent.every = 0;
  end(job, {{"a", 1}});
  EXPECT_THAT(told(job), IsEmpty());
  job.options.persistent.every = 1;
  end(job, {{"b", 2}}, [&](Engine& engine, int rank) {
    Volume gone;
    gone.read_errno = ESTALE;
    (void)engine.need_checkpoint();
    if (rank == 0) job.disk.set_volume("/prefix", gone);
    (void)engine.need_checkpoint();
  });
  EXPECT_THAT(told(job), IsEmpty());
  job.disk.set_volume("/prefix", {});
  EXPECT_EQ(reopen(job).step, 2);
}

}  // namespace
}  // namespace kedge::faults::what_is_persistent_test
