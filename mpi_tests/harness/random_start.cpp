#include "harness/random_start.hpp"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <random>

#include "base/text.hpp"
#include "harness/random_choices.hpp"

namespace kedge::faults {
namespace {

using Values = std::vector<std::uint64_t>;
constexpr std::size_t kRegions = 3;

/// Empty ones, some around the 4 KiB of a page and the 64 KiB from which a region lies alone, and any size.
Values content(std::uint64_t seed, int rank, int step, std::size_t region) {
  std::seed_seq mixed{seed, static_cast<std::uint64_t>(rank), static_cast<std::uint64_t>(step), region};
  std::mt19937_64 mixer(mixed);
  RandomChoices choices(mixer());
  std::size_t size = choices.one_of<std::size_t>({0, 0, 1, 17, 511, 512, 513, 4000, 8191, 8192, 8193});
  if (choices.one_in(8)) size = choices.below(30'000);
  Values values(size);
  for (std::uint64_t& value : values) value = choices.generator()();
  return values;
}

/// The memory of one rank.
class Application {
 public:
  Application(std::uint64_t seed, int rank) : seed_(seed), rank_(rank) {}

  void commit(Engine& engine, int step) {
    step_ = step;
    for (std::size_t region = 0; region < kRegions; ++region) regions_.at(region) = content(seed_, rank_, step, region);
    engine.checkpoint(tag_of(step), state());
  }

  /// By restore, which checks what it loads as it loads it.
  std::optional<Tag> restore(Engine& engine, const Selection& selection) {
    auto tag = engine.restore(state(), selection);
    if (!tag) return tag;
    for (std::size_t region = 0; region < kRegions; ++region) {
      EXPECT_TRUE(regions_.at(region) == content(seed_, rank_, step_, region))
          << "rank " << rank_ << " restored wrong bytes of step " << step_;
    }
    return tag;
  }
  [[nodiscard]] int step() const noexcept { return step_; }

  /// The step of what is open, or kNotLoaded. Fails the test if a load succeeded and gave something else.
  int load(Engine& engine) {
    if (!engine.load("step", mutable_region(&step_, Shape{}))) return Opening::kNotLoaded;
    std::array<Values, kRegions> expected;
    for (std::size_t region = 0; region < kRegions; ++region) {
      expected.at(region) = content(seed_, rank_, step_, region);
      regions_.at(region).assign(expected.at(region).size(), 0);
    }
    const State memory = state();
    for (const State::Item& item : memory.items()) {
      if (!engine.load(item.name, item.view().region)) return Opening::kNotLoaded;
    }
    EXPECT_TRUE(regions_ == expected) << "rank " << rank_ << " loaded wrong bytes of step " << step_;
    return step_;
  }

 private:
  State state() {
    State state;
    state.add("step", step_);
    for (std::size_t region = 0; region < kRegions; ++region) state.add(compose("r{}", region), regions_.at(region));
    return state;
  }

  std::uint64_t seed_;
  int rank_;
  int step_ = 0;
  std::array<Values, kRegions> regions_;
};

Opening open_and_load(Engine& engine, Application& application, const Selection& selection, Newer newer) {
  Opening opening;
  opening.tag = engine.open(selection, newer);
  if (!opening.tag) return opening;
  opening.commit_id = engine.info().id;
  opening.level = engine.level(*opening.tag);
  opening.step = application.load(engine);
  EXPECT_TRUE(opening.step == Opening::kNotLoaded || *opening.tag == tag_of(opening.step)) << *opening.tag;
  engine.close();
  return opening;
}

Opening restore(Engine& engine, Application& application, const Selection& selection) {
  Opening opening;
  opening.tag = application.restore(engine, selection);
  if (!opening.tag) return opening;
  opening.commit_id = engine.info().id;
  opening.level = engine.level(*opening.tag);
  opening.step = application.step();
  EXPECT_EQ(*opening.tag, tag_of(opening.step));
  return opening;
}

void wait_for_all(RankScope& scope) { scope.communicator.barrier(Deadline::after(std::chrono::seconds(60))); }

void run_rank(RankScope& scope, const RandomStart& start, RankObservation& saw) {
  Application application(start.seed, scope.rank);
  saw.reached = "constructor";
  Engine engine = scope.make_engine();
  if (start.opens) {
    saw.reached = "open";
    saw.first = start.restores ? restore(engine, application, start.selection)
                               : open_and_load(engine, application, start.selection, start.newer);
  }
  for (int i = 0; i < start.commits; ++i) {
    saw.reached = compose("commit {}", i);
    application.commit(engine, start.first_step + i);
    saw.committed.push_back(engine.level(tag_of(start.first_step + i)));
  }
  for (int i = 0; i < start.opens_again; ++i) {
    saw.reached = "open again";
    wait_for_all(scope);
    if (scope.rank == 0) start.between();
    wait_for_all(scope);
    saw.again.push_back(start.restores ? restore(engine, application, latest)
                                       : open_and_load(engine, application, latest, Newer::keep));
  }
  if (start.finalizes) {
    saw.reached = "finalize";
    engine.finalize();
  }
  saw.reached = "end";
}

}  // namespace

Tag tag_of(int step) { return compose("s{}", step); }

Started carry_out(SimulatedJob& job, const RandomStart& start) {
  Started started;
  started.ranks.resize(static_cast<std::size_t>(job.ranks));
  const auto outcomes = job.start([&](RankScope& scope) {
    RankObservation& saw = started.ranks[static_cast<std::size_t>(scope.rank)];
    try {
      run_rank(scope, start, saw);
    } catch (const Error& error) {
      saw.failure = error.failure();
    }
  });
  job.kill_all_ranks = false;
  for (std::size_t rank = 0; rank < outcomes.size(); ++rank) {
    started.any_died = started.any_died || outcomes[rank].died;
    EXPECT_TRUE(outcomes[rank].returned() || outcomes[rank].died) << "rank " << rank << " threw what is no Error";
  }
  return started;
}

}  // namespace kedge::faults
