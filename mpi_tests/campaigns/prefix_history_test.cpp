// Random histories of several starts over stores and a prefix that are both lost, damaged and set back in time: what
// was persistent and not damaged is there, nothing that was discarded comes back, and no start is silently from zero.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <random>
#include <set>

#include "base/attempt.hpp"
#include "base/text.hpp"
#include "harness/flush_fixture.hpp"
#include "harness/seeds.hpp"
#include "harness/several_starts.hpp"

namespace kedge::faults::prefix_history_test {
namespace {

class PrefixHistory : public FlushFixture {};

/// One commit, as far as the history knows it; steps are numbered in the order of their commits.
struct Known {
  bool returned = false;
  bool stored = false;  ///< nothing happened to the stores since
  bool persistent = false;
  bool damaged_there = false;
  bool discarded = false;
};

class Story {
 public:
  explicit Story(std::uint64_t seed) : random_(seed), job_(2 + static_cast<int>(seed % 3)) {
    job_.options.persistent.every = draw(3);
    job_.options.store.keep = 1 + static_cast<std::uint32_t>(draw(2));
    job_.options.redundancy.every = draw(2) + 1;
    job_.options.open.verify = std::array{Verify::headers, Verify::loaded, Verify::all, Verify::all}.at(draw(4));
    if (draw(3) == 0) job_.options.store.on_exit = OnExit::remove_if_persistent;
    if (draw(4) == 0) job_.options.persistent.keep = 1 + draw(2);
  }

  void run() {
    for (int i = 0; i < 8 && !testing::Test::HasFailure(); ++i) {
      start();
      disturb();
    }
  }

  std::string told;

 private:
  std::uint64_t draw(std::uint64_t below) { return random_() % below; }
  void tell(std::string line) { told += std::move(line) + "\n"; }
  static Tag tag_of(int step) { return compose("s{}", step); }
  static int step_of(const Tag& tag) { return std::stoi(tag.substr(1)); }
  /// Of a file on the prefix.
  static int step_in(const std::string& path) { return std::stoi(path.substr(std::string("/prefix/s").size())); }

  [[nodiscard]] int newest_sure() const {
    int newest = 0;
    for (const auto& [step, known] : commits_) {
      const bool there = known.persistent && !known.damaged_there;
      const bool here = known.stored;
      if (!known.discarded && (there || here)) newest = step;
    }
    return newest;
  }

  void touch_stores() {
    for (auto& [step, known] : commits_) known.stored = false;
  }

  struct Plan {
    bool discard = false;
    std::optional<Selection> selection;
    int commits = 0;
    int wait_at = -1;
    bool finalize = false;
    bool dies = false;
  };

  void start() {
    Plan plan;
    plan.commits = static_cast<int>(draw(4));
    if (draw(3) == 0 && plan.commits > 0)
      plan.wait_at = static_cast<int>(draw(static_cast<std::uint64_t>(plan.commits)));
    plan.finalize = draw(2) == 0;
    if (draw(5) == 0 && next_ > 2) {
      plan.selection = Before{tag_of(next_ - 1 - static_cast<int>(draw(2)))};
      plan.discard = draw(2) == 0;
    }
    plan.dies = draw(3) == 0;
    if (plan.dies) {
      job_.kill_all_ranks = draw(2) == 0;
      job_.disk.stop_world_after(static_cast<int>(draw(static_cast<std::uint64_t>(job_.ranks))), 5 + draw(250),
                                 draw(1000));
    }
    const int sure = newest_sure();
    const int first = next_;
    std::mutex mutex;
    std::set<std::string> saw;
    int opened = -1;
    bool closed = false;
    tell(compose("start: {} commits, wait {}, finalize {}, {}{}{}; sure is {}", plan.commits, plan.wait_at,
                 plan.finalize, plan.selection ? "before " + std::get<Before>(*plan.selection).tag : "latest",
                 plan.discard ? " discarding" : "", plan.dies ? ", with a death" : "", sure));
    const auto outcomes = job_.start(
        [&](RankScope& scope) {
          Engine engine = scope.make_engine();
          std::optional<Tag> tag;
          const auto failure = attempt(
              [&] { tag = engine.open(plan.selection.value_or(latest), plan.discard ? Newer::discard : Newer::keep); });
          {
            const std::lock_guard guard(mutex);
            saw.insert(failure ? std::string(to_string(failure->code)) : tag.value_or("nothing"));
            if (!failure) opened = tag ? step_of(*tag) : 0;
          }
          if (failure) return;
          if (tag) {
            (void)load_step(engine, scope.rank);
            const auto bad = attempt([&] { engine.close(); });
            if (bad) return;
          }
          {
            const std::lock_guard guard(mutex);
            closed = true;
          }
          for (int i = 0; i < plan.commits; ++i) {
            const int step = first + i;
            commit_step(engine, scope.rank, tag_of(step), step);
            if (i == plan.wait_at) engine.wait(tag_of(step), Level::persistent);
            const bool persistent = engine.level(tag_of(step)) == Level::persistent;
            if (scope.rank == 0) note(step, persistent);
          }
          if (plan.finalize) engine.finalize();
        },
        Crash::process, draw(1000));
    job_.kill_all_ranks = false;
    next_ += plan.commits;
    for (int step = first; step < next_; ++step) (void)commits_[step];
    std::string all;
    for (const auto& one : saw) all += one + " ";
    tell(compose("  saw {}closed {}", all, closed));
    for (const auto& outcome : outcomes) {
      if (outcome.failure) tell("  " + to_string(*outcome.failure));
      const bool fine = outcome.returned() || plan.dies;
      EXPECT_TRUE(fine) << (outcome.failure ? to_string(*outcome.failure) : "died");
    }
    note_retired();
    if (plan.finalize && job_.options.store.on_exit != OnExit::keep) touch_stores();
    if (plan.discard && plan.dies) {  // they may be discarded or not
      for (auto& [step, known] : commits_) known.stored = known.persistent = false;
    }
    saw.erase("timeout");
    EXPECT_LE(saw.size(), 1U) << all;
    if (saw.empty()) return;  // a death before
    if (plan.selection) {
      if (plan.discard && opened > 0) {
        for (auto& [step, known] : commits_) known.discarded = known.discarded || (step > opened && step < first);
      }
      return;
    }
    EXPECT_FALSE(opened > 0 && commits_[opened].discarded) << opened << " was discarded";
    const bool lost = saw.contains("unrecoverable");
    if (lost) {
      EXPECT_EQ(sure, 0) << "unrecoverable";
      return;
    }
    const bool any = std::ranges::any_of(commits_, [&](auto& one) { return one.first < first && one.second.returned; });
    EXPECT_TRUE(opened > 0 || !any) << "a silent start";
    EXPECT_GE(opened, sure);
  }

  void note(int step, bool persistent) {
    const std::lock_guard guard(mutex_);
    commits_[step].returned = commits_[step].stored = true;
    if (persistent) commits_[step].persistent = true;
    if (persistent) commits_[step].damaged_there = false;
  }

  /// persistent.keep lets a commit go once that many newer ones are on the prefix, also while finalize flushes.
  void note_retired() {
    const std::uint64_t keep = job_.options.persistent.keep;
    if (keep == 0) return;
    std::set<int> manifests;
    for (const auto& [path, entry] : job_.disk.snapshot()) {
      if (path.starts_with("/prefix/s") && path.ends_with("/checkpoint.h5")) manifests.insert(step_in(path));
    }
    for (auto& [step, known] : commits_) {
      const auto newer = std::distance(manifests.upper_bound(step), manifests.end());
      if (!manifests.contains(step) && static_cast<std::uint64_t>(newer) >= keep) known.persistent = false;
    }
  }

  void disturb() {
    switch (draw(8)) {
      case 0: return tell("nothing");
      case 1: {
        const auto node = draw(static_cast<std::uint64_t>(job_.ranks));
        job_.disk.remove_all(compose("/nodes/node{}", node));
        touch_stores();
        return tell(compose("node {} lost", node));
      }
      case 2:
        job_.disk.remove_all("/nodes");
        touch_stores();
        return tell("all stores lost");
      case 3: {
        std::vector<std::string> files;
        for (const auto& [path, entry] : job_.disk.snapshot()) {
          if (path.starts_with("/nodes/") && path.find("rank-") != std::string::npos && entry.bytes.size() > 100)
            files.push_back(path);
        }
        if (files.empty()) return;
        const auto& path = files[draw(files.size())];
        const auto at = draw(job_.disk.read_all(path).size());
        job_.disk.flip_bit(path, at);
        touch_stores();
        return tell(compose("bit {} of {}", at, path));
      }
      case 4: {
        std::vector<std::string> files;
        for (const auto& [path, entry] : job_.disk.snapshot()) {
          if (path.starts_with("/prefix/s") && entry.bytes.size() > 100) files.push_back(path);
        }
        if (files.empty()) return;
        const auto& path = files[draw(files.size())];
        const auto at = draw(job_.disk.read_all(path).size());
        job_.disk.flip_bit(path, at);
        commits_[step_in(path)].damaged_there = true;
        return tell(compose("bit {} of {}", at, path));
      }
      case 5: {
        static const std::vector<std::string> kRecords = {"tags.jsonl", "first-master"};
        const auto& record = kRecords[draw(kRecords.size())];
        job_.disk.remove_all("/prefix/.kedge/test/" + record);
        return tell(record + " lost");
      }
      case 6: {
        if (prefix_before_.empty()) {
          prefix_before_ = job_.disk.snapshot();
          commits_before_ = commits_;
          return tell("prefix remembered");
        }
        job_.disk.restore(prefix_before_, "/prefix");
        const bool any = std::ranges::any_of(commits_before_, [](auto& one) { return one.second.returned; });
        for (auto& [step, known] : commits_) {
          const Known then = commits_before_.contains(step) ? commits_before_.at(step) : Known{};
          known.persistent = then.persistent;
          known.returned = known.returned && any;  // the records may be from before all commits
          known.damaged_there = then.damaged_there;
          known.discarded = then.discarded;
          known.stored = known.stored && !known.discarded;
        }
        prefix_before_.clear();
        // Stores that come back from after that have commits which no record orders among those that follow.
        before_.clear();
        return tell("prefix set back");
      }
      default: {
        if (before_.empty()) {
          before_ = job_.disk.snapshot();
          return tell("remembered");
        }
        job_.disk.restore(before_, "/nodes");
        touch_stores();
        before_.clear();
        // What nobody could see when newer ones were discarded is not among them.
        for (auto& [step, known] : commits_) known.discarded = known.discarded && known.persistent;
        return tell("stores set back");
      }
    }
  }

  std::mt19937_64 random_;
  PersistentJob job_;
  std::mutex mutex_;
  std::map<int, Known> commits_;
  int next_ = 1;
  FaultyDisk::Snapshot before_;
  FaultyDisk::Snapshot prefix_before_;
  std::map<int, Known> commits_before_;
};

TEST_F(PrefixHistory, WhatIsPersistentStaysWhateverHappens) {
  for_each_seed({60, 800}, "campaigns", [](std::uint64_t seed) {
    Story story(seed);
    story.run();
    if (HasFailure()) ADD_FAILURE() << story.told;
  });
}

}  // namespace
}  // namespace kedge::faults::prefix_history_test
