// A stage beside protection and flush: what it takes to add one, and that it is treated as they are.
#include <gtest/gtest.h>

#include "harness/engine_checks.hpp"
#include "harness/flush_fixture.hpp"
#include "pipeline/stage_list.hpp"

namespace kedge::faults::third_stage_test {
namespace {

/// Writes one line for each checkpoint, beside the prefix; fails for those whose tag says so.
class IndexStage final : public pipeline::Stage {
 public:
  explicit IndexStage(std::vector<std::string>& lines) : lines_(lines) {}
  [[nodiscard]] std::string_view name() const noexcept override { return "index"; }
  [[nodiscard]] Level level() const noexcept override { return Level::none; }
  [[nodiscard]] std::string failure_warning(const CommitHead& commit, const Failure& failure,
                                            std::uint64_t) const override {
    return compose("{} is not in the index: {}", commit.tag, to_string(failure));
  }
  [[nodiscard]] std::optional<Failure> run(const comm::Group& group, const pipeline::CommitFiles& files) override {
    const std::uint64_t bytes = group.sum(files.container->size_bytes());
    return group.try_on_all_ranks([&] {
      if (files.commit.tag == "bad") throw Error(ErrorCode::io, "no index today");
      if (group.is_root()) lines_.push_back(compose("{} {}", files.commit.tag, bytes != 0));
    });
  }

 private:
  std::vector<std::string>& lines_;
};

class ThirdStage : public FlushFixture, public testing::WithParamInterface<PipelineMode> {};

TEST_P(ThirdStage, TakesEverySecondCheckpointAndItsFailureIsLoggedAndMadeUpFor) {
  std::vector<std::string> lines;
  PersistentJob job(2);
  job.options.pipeline.mode = GetParam();
  job.surroundings = [&](int /*rank*/, engine::EngineEnvironment& environment) {
    environment.waits_for_worker = true;
    environment.more_stages = [&lines] {
      std::vector<pipeline::StageWithPolicy> stages;
      using pipeline::StagePolicy;
      stages.push_back(
          {std::make_unique<IndexStage>(lines), std::make_unique<StagePolicy>(StagePolicy::Rule::nth_since_last, 2)});
      return stages;
    };
  };
  expect_all_returned(job.start([](RankScope& scope) {
    Engine engine = scope.make_engine();
    for (const char* tag : {"one", "two", "three", "bad", "five", "six"}) commit_step(engine, scope.rank, tag, 1);
    engine.finalize();
  }));
  EXPECT_EQ(lines, (std::vector<std::string>{"two true", "five true"}));
  EXPECT_EQ(tags(job).size(), 6U) << "the stages before it went on";
  EXPECT_TRUE(job.logged("bad is not in the index: "));
}
INSTANTIATE_TEST_SUITE_P(Modes, ThirdStage, testing::Values(PipelineMode::inline_, PipelineMode::background));

}  // namespace
}  // namespace kedge::faults::third_stage_test
