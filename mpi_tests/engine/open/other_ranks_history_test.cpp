// Random histories in which the number of ranks, the nodes and the options change at each start, and nodes are lost
// between starts and ranks die in them. After each open an oracle that reads the disk says what had to come back, and
// that no file of it is gone.
#include <gmock/gmock.h>

#include <algorithm>
#include <functional>
#include <iostream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/text.hpp"
#include "harness/disk_oracle.hpp"
#include "harness/elastic_program.hpp"
#include "harness/elastic_starts.hpp"
#include "harness/engine_checks.hpp"
#include "harness/seeds.hpp"
#include "harness/several_starts.hpp"

namespace kedge::faults::other_ranks_history_test {
namespace {

using Harm = ElasticHarm;

Tag tag_of(int step) { return compose("s{}", step); }

/// What one rank saw of it.
struct Saw {
  std::optional<Tag> tag;
  Id128 id;
  int step = 0;
  std::uint32_t saved_by = 0;
  Level level = Level::none;
  std::vector<Level> committed;
  std::optional<Tag> again;
  int step_again = 0;
  std::string reached;
  std::optional<Failure> failure;
};

class History : private ElasticStarts {
 public:
  using ElasticStarts::ElasticStarts;

  void run() {
    const int starts = 6 + choices_.int_below(5);
    for (int i = 0; i < starts && !ended_ && !testing::Test::HasFailure(); ++i) {
      if (i != 0) change();
      configure();
      draw_start(i == 0);
      one_start();
    }
  }

  [[nodiscard]] std::string story() const {
    std::string text = told_;
    for (const std::string& line : job_.log()) text += "    " + line + "\n";
    return text;
  }

 private:
  [[nodiscard]] static std::string describe(const std::vector<RemainingCommit>& held) {
    std::string text;
    for (const RemainingCommit& commit : held) {
      text += compose(" {}({} ranks, {}{}{})", commit.tag, commit.world_size, commit.generation,
                      commit.persistent ? "p" : "", commit.in_stores() ? "+" : "-");
    }
    return text;
  }

  [[nodiscard]] static const RemainingCommit* expected_of(const std::vector<RemainingCommit>& held,
                                                          const Selection& selection) {
    const auto* tag = std::get_if<Tag>(&selection);
    const auto* before = std::get_if<Before>(&selection);
    bool passed = before == nullptr;
    for (const RemainingCommit& commit : held) {
      if (passed && (tag == nullptr || commit.tag == *tag) && commit.can_be_recovered()) return &commit;
      if (before != nullptr && commit.tag == before->tag) passed = true;
    }
    return nullptr;
  }

  void run_rank(RankScope& scope, Saw& saw, ElasticProgram::Found& found, ElasticProgram::Found& again,
                const std::function<void(const Saw&)>& after_open) {
    saw.reached = "constructor";
    Engine engine = scope.make_engine();
    ElasticProgram program(scope.rank, scope.ranks, rows_);
    saw.reached = "restore";
    if (start_.opens) saw.tag = engine.restore(program.state(), start_.selection);
    if (saw.tag) {
      saw.id = engine.info().id;
      saw.saved_by = engine.info().world_size;
      saw.level = engine.level(*saw.tag);
      saw.step = program.step();
      EXPECT_EQ(*saw.tag, tag_of(saw.step));
      program.expect(saw.step, static_cast<int>(saw.saved_by), found);
    }
    saw.reached = "after restore";
    once(engine, scope.rank, [&] { after_open(saw); });
    for (int i = 0; i < start_.commits; ++i) {
      saw.reached = compose("commit {}", i);
      program.set(next_step_ + i);
      engine.checkpoint(tag_of(next_step_ + i), program.state());
      const bool last = i + 1 == start_.commits;
      if (last && start_.waits && job_.options.redundancy.scheme != Scheme::automatic) {
        saw.reached = "wait";
        engine.wait(tag_of(next_step_ + i), Level::protected_);
      }
      saw.committed.push_back(engine.level(tag_of(next_step_ + i)));
    }
    if (start_.restores_again) {
      saw.reached = "restore again";
      ElasticProgram other(scope.rank, scope.ranks, rows_);
      saw.again = engine.restore(other.state());
      if (saw.again) {
        saw.step_again = other.step();
        other.expect(saw.step_again, static_cast<int>(engine.info().world_size), again);
      }
    }
    saw.reached = "finalize";
    if (start_.finalizes) engine.finalize();
    saw.reached = "end";
  }

  void one_start() {
    const auto nodes = start_.node_set();
    const auto held = oracle_.look(nodes);
    const RemainingCommit* expected = expected_of(held, start_.selection);
    std::string places;
    for (const std::string& node : start_.nodes) places += " " + node;
    tell(compose(
        "start of {} ranks on{}; {}, parity {}, sets of {}, keep {}, every {}, {}, commits {}{}{}{}; on disk{}; "
        "expected {}{}",
        start_.ranks, places, to_string(job_.options.redundancy.scheme), job_.options.redundancy.parity,
        job_.options.redundancy.set_size, job_.options.store.keep, job_.options.persistent.every,
        job_.options.pipeline.mode == PipelineMode::inline_ ? "inline" : "background", start_.commits,
        start_.finalizes ? ", finalizes" : "", start_.opens ? "" : ", opens nothing",
        start_.restores_again ? ", restores again" : "", describe(held), expected ? expected->tag : "nothing",
        std::holds_alternative<Latest>(start_.selection) ? "" : " (selected)"));
    if (start_.dies) plan_death();
    expect_promise(held);
    const auto files_before = sealed_files(job_.disk.snapshot());
    std::vector<Saw> saw(static_cast<std::size_t>(start_.ranks));
    ElasticProgram::Found found;
    ElasticProgram::Found again;
    const auto outcomes = job_.start([&](RankScope& scope) {
      Saw& mine = saw[static_cast<std::size_t>(scope.rank)];
      try {
        run_rank(scope, mine, found, again, [&](const Saw& first) {
          if (first.tag) judge_files(held, files_before, first);
        });
      } catch (const Error& error) {
        mine.failure = error.failure();
      }
    });
    job_.kill_all_ranks = false;
    bool any_died = false;
    for (const auto& outcome : outcomes) {
      any_died = any_died || outcome.died;
      EXPECT_TRUE(outcome.returned() || outcome.died || outcome.failure) << "threw what is no Error";
    }
    tell(compose("opened {} of {} ranks, level {}, reached {}: {}{}", saw[0].tag.value_or("nothing"), saw[0].saved_by,
                 to_string(saw[0].level), saw[0].reached, saw[0].failure ? to_string(*saw[0].failure) : "ok",
                 any_died ? " (somebody died)" : ""));
    if (!any_died) judge(held, expected, saw, found);
    judge_end(held, saw[0], any_died);
    next_step_ += start_.commits;
  }

  /// What the engine said that there is, is there.
  void expect_promise(const std::vector<RemainingCommit>& held) const {
    if (harm_ == Harm::damage || promise_.step == 0) return;
    std::size_t gone = 0;
    for (const std::string& node : promise_.nodes) {
      if (lost_.contains(node) || !start_.node_set().contains(node)) ++gone;
    }
    const bool must =
        promise_.level == Level::persistent || gone == 0 || (gone == 1 && promise_.level == Level::protected_);
    if (!must) return;
    const RemainingCommit* newest = expected_of(held, latest);
    ASSERT_NE(newest, nullptr) << "s" << promise_.step << " was " << to_string(promise_.level);
    EXPECT_GE(std::stoi(newest->tag.substr(1)), promise_.step) << "was " << to_string(promise_.level);
  }

  /// While it is open, or just closed.
  void judge_files(const std::vector<RemainingCommit>& held, const std::vector<StoredFile>& files_before,
                   const Saw& saw) const {
    const auto nodes = start_.node_set();
    const auto now = oracle_.look(nodes);
    const auto opened_now = std::ranges::find(now, saw.id, &RemainingCommit::id);
    if (is_lazy_ || job_.options.open.verify != Verify::all) return;
    ASSERT_NE(opened_now, now.end());
    EXPECT_TRUE(opened_now->can_be_recovered()) << *saw.tag << " was opened and cannot be had any more";
    const bool as_it_lies = saw.saved_by != static_cast<std::uint32_t>(start_.ranks);
    if (as_it_lies) {
      std::set<std::string> paths;
      for (const StoredFile& file : sealed_files(job_.disk.snapshot())) paths.insert(file.path);
      for (const StoredFile& file : files_before) {
        const auto* container = std::get_if<format::Superblock>(&file.head);
        const auto* set = std::get_if<format::SetDescriptor>(&file.head);
        const Id128 id = container != nullptr ? container->commit.id : set->commit_id;
        if (file.whole && id == saw.id) {
          EXPECT_TRUE(paths.contains(file.path)) << file.path << " is gone";
        }
      }
    }
    const auto before = std::ranges::find(held, saw.id, &RemainingCommit::id);
    if (before == held.end() && harm_ == Harm::damage) return;  // rebuilt where only copies were left
    ASSERT_NE(before, held.end());
    if (before->in_stores()) {
      EXPECT_TRUE(opened_now->in_stores());
    }
    // Damaged parity is found behind the open.
    if (saw.level == Level::protected_ && harm_ != Harm::damage) {
      EXPECT_EQ(fatal_loss(job_.disk, nodes, 1, saw.id), "") << *saw.tag << " is called protected";
    }
    // The checkpoints that store.keep keeps.
    std::uint32_t counted = 0;
    for (const RemainingCommit& commit : held) {
      if (!commit.can_be_recovered()) continue;
      if (++counted > keep_) break;
      const auto same = std::ranges::find(now, commit.id, &RemainingCommit::id);
      EXPECT_TRUE(same != now.end() && same->can_be_recovered()) << commit.tag << " is kept, and gone";
    }
  }

  void judge(const std::vector<RemainingCommit>& held, const RemainingCommit* expected, const std::vector<Saw>& ranks,
             const ElasticProgram::Found& found) {
    const Saw& saw = ranks[0];
    for (const Saw& other : ranks) {
      EXPECT_EQ(other.tag, saw.tag);
      EXPECT_EQ(other.step, saw.step);
      EXPECT_EQ(other.reached, saw.reached);
      EXPECT_EQ(other.again, saw.again);
      EXPECT_EQ(other.step_again, saw.step_again);
      EXPECT_EQ(text_of(other.failure), text_of(saw.failure));
    }
    if (saw.tag) ElasticProgram::expect_whole(found, saw.step, static_cast<int>(saw.saved_by));
    if (saw.reached == "end" && start_.restores_again && std::holds_alternative<Latest>(start_.selection)) {
      const int newest = start_.commits != 0 ? next_step_ + start_.commits - 1 : saw.step;
      if (!is_lazy_ && (start_.opens || start_.commits != 0)) {
        EXPECT_EQ(saw.step_again, newest);
      }
    }
    if (!start_.opens) return;
    if (expected == nullptr) {
      EXPECT_TRUE(!saw.tag || harm_ == Harm::damage) << "opened what is lost";
      EXPECT_TRUE(held.empty() || !saw.failure || saw.failure->code == ErrorCode::unrecoverable ||
                  saw.failure->code == ErrorCode::not_found);
      return;
    }
    // Damage that is found late, in what was protected again from it meanwhile.
    is_lazy_ = is_lazy_ || job_.options.open.verify != Verify::all;
    if (is_lazy_) return;
    const bool exact = !prefix_is_damaged_ || expected->in_stores();
    if (!exact) return;
    EXPECT_EQ(saw.id, expected->id) << expected->tag << " can be had";
    EXPECT_FALSE(saw.failure) << saw.reached << ": " << text_of(saw.failure);
  }

  void judge_end(const std::vector<RemainingCommit>& held, const Saw& saw, bool any_died) {
    const auto nodes = start_.node_set();
    const auto now = oracle_.look(nodes);
    const RemainingCommit* before = expected_of(held, latest);
    const RemainingCommit* newest = expected_of(now, latest);
    const bool is_latest = std::holds_alternative<Latest>(start_.selection);
    if (before != nullptr && !prefix_is_damaged_ && !is_lazy_) {
      ASSERT_NE(newest, nullptr) << before->tag << " could be had before this start";
      if (is_latest) {
        EXPECT_GE(newest->generation, before->generation) << before->tag << " could be had before this start";
      }
    }
    if (saw.failure && !any_died) {
      ended_ = true;
      return;
    }
    promise_ = {};
    if (any_died || !is_latest || (!start_.opens && start_.commits == 0)) return;
    promise_.nodes = nodes;
    promise_.step = saw.step;
    promise_.level = saw.level;
    if (!saw.committed.empty()) {
      promise_.step = next_step_ + start_.commits - 1;
      promise_.level = saw.committed.back();
    }
    // finalize may have flushed it, and removed the stores.
    if (newest != nullptr && newest->tag == tag_of(promise_.step) && newest->persistent) {
      promise_.level = Level::persistent;
    }
    if (promise_.level != Level::protected_ || newest == nullptr || newest->tag != tag_of(promise_.step)) return;
    if (harm_ != Harm::damage) {
      EXPECT_EQ(fatal_loss(job_.disk, nodes, 1, newest->id), "") << newest->tag;
    }
  }
};

class OtherRanksHistory : public testing::TestWithParam<Harm> {};

TEST_P(OtherRanksHistory, WhatCountsComesBack) {
  for_each_seed({40, 1000}, "engine_other_ranks", [](std::uint64_t seed) {
    History history(seed, GetParam());
    history.run();
    if (testing::Test::HasFailure()) std::cout << history.story();
  });
}

std::string name_of(const testing::TestParamInfo<Harm>& tested) {
  constexpr const char* kNames[] = {"Losses", "Deaths", "Damage"};
  return kNames[static_cast<int>(tested.param)];
}

INSTANTIATE_TEST_SUITE_P(With, OtherRanksHistory, testing::Values(Harm::losses, Harm::deaths, Harm::damage), name_of);

}  // namespace
}  // namespace kedge::faults::other_ranks_history_test
