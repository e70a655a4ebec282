// Starts of an elastic program, drawn at random: how many ranks on which nodes with which options, what was lost and
// damaged before, and who dies.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/text.hpp"
#include "harness/disk_oracle.hpp"
#include "harness/random_choices.hpp"
#include "harness/simulated_job.hpp"

namespace kedge::faults {

enum class ElasticHarm : std::uint8_t { losses, deaths, damage };

/// One start, the same on all ranks.
struct ElasticStart {
  int ranks = 0;
  std::vector<std::string> nodes;  ///< of each rank
  Selection selection = latest;
  int commits = 0;
  bool opens = true;
  bool restores_again = false;  ///< after the commits
  bool waits = false;           ///< until the last of them is protected
  bool finalizes = false;
  bool dies = false;  ///< a rank, somewhere

  [[nodiscard]] std::set<std::string> node_set() const { return {nodes.begin(), nodes.end()}; }
};

/// Known to be on the disk when a start ended, and on which nodes.
struct ElasticPromise {
  int step = 0;
  Level level = Level::none;
  std::set<std::string> nodes;
};

class ElasticStarts {
 public:
  ElasticStarts(std::uint64_t seed, ElasticHarm harm)
      : harm_(harm), choices_(seed), job_(1, SimulatedJob::memory_disk()), oracle_(job_.disk) {
    rows_ = choices_.one_of<std::uint64_t>({0, 1, 2, 5, 29, 64, 97});
    start_.ranks = 1 + choices_.int_below(8);
    place_ranks(1 + choices_.int_below(kNodes));
  }

 protected:
  static constexpr int kNodes = 5;  ///< that the job may run on

  void tell(const std::string& line) { told_ += line + "\n"; }

  void place_ranks(int node_count) {
    std::vector<std::string> names;
    for (int node = 0; node < kNodes; ++node) names.push_back(compose("node{}", node));
    std::ranges::shuffle(names, choices_.generator());
    names.resize(static_cast<std::size_t>(node_count));
    start_.nodes.clear();
    for (int rank = 0; rank < start_.ranks; ++rank)
      start_.nodes.push_back(names[static_cast<std::size_t>(rank % node_count)]);
    if (choices_.one_in(2)) std::ranges::sort(start_.nodes);
  }

  /// Between two starts.
  void change() {
    if (!choices_.one_in(4)) start_.ranks = 1 + choices_.int_below(8);
    const auto before = start_.node_set();
    const int count = static_cast<int>(before.size());
    if (choices_.one_in(5)) {
      place_ranks(1 + choices_.int_below(kNodes));
    } else {
      std::vector<std::string> names(before.begin(), before.end());
      if (count > 1 && choices_.one_in(4)) names.erase(names.begin() + choices_.int_below(count));
      std::ranges::shuffle(names, choices_.generator());
      start_.nodes.clear();
      for (int rank = 0; rank < start_.ranks; ++rank)
        start_.nodes.push_back(names[static_cast<std::size_t>(rank) % names.size()]);
    }
    lost_.clear();
    if (choices_.one_in(3)) {
      const std::vector<std::string> names(before.begin(), before.end());
      lose(choices_.one_of(names));
    }
    if (promise_.level == Level::persistent && choices_.one_in(5)) {
      for (int node = 0; node < kNodes; ++node) lose(compose("node{}", node));
    }
    if (harm_ == ElasticHarm::damage) damage();
  }

  void lose(const std::string& node) {
    job_.disk.remove_all("/nodes/" + node);
    lost_.insert(node);
    tell("lost " + node);
  }

  /// Bits flip in files of the stores, and in containers on the prefix.
  void damage() {
    std::vector<std::string> paths = store_paths(job_.disk, start_.node_set());
    for (const auto& [path, entry] : job_.disk.snapshot()) {
      if (path.starts_with("/prefix/s") && path.find("/rank") != std::string::npos && path.ends_with(".h5") &&
          choices_.one_in(4)) {
        paths.push_back(path);
      }
    }
    for (int i = choices_.int_below(4); i > 0 && !paths.empty(); --i) {
      const std::string path = choices_.one_of(paths);
      const std::uint64_t size = job_.disk.read_all(path).size();
      if (size == 0) continue;
      const std::uint64_t offset = choices_.below(size);
      if (path.starts_with("/nodes") && choices_.one_in(3)) {
        strike_in_use(path, offset);
        continue;
      }
      job_.disk.flip_bit(path, offset, static_cast<unsigned>(choices_.below(8)));
      if (path.starts_with("/prefix")) prefix_is_damaged_ = true;
      tell(compose("flipped a bit of {} at {} of {}", path, offset, size));
    }
  }

  /// In the next start: after the file was found good.
  void strike_in_use(const std::string& path, std::uint64_t offset) {
    is_lazy_ = true;
    const int how = choices_.int_below(3);
    if (how == 0) job_.disk.flip_bit_when_verified(path, offset);
    if (how == 1) job_.disk.flip_bit_when_opened(path, offset);
    if (how == 2) job_.disk.vanish_when_opened(path);
    tell(compose("{} of {} at {}", how == 2 ? "loss" : "damage", path, offset));
  }

  void configure() {
    Options& options = job_.options;
    std::map<std::string, int> ranks_on;
    int most_on_a_node = 0;
    for (const std::string& node : start_.nodes) most_on_a_node = std::max(most_on_a_node, ++ranks_on[node]);
    const int most = std::min(3, start_.ranks / most_on_a_node - 1);
    std::vector<Scheme> schemes = {Scheme::automatic};
    if (most > 0) schemes.insert(schemes.end(), {Scheme::partner, Scheme::xor_, Scheme::xor_, Scheme::rs, Scheme::rs});
    auto& redundancy = options.redundancy;
    redundancy.scheme = choices_.one_of(schemes);
    redundancy.parity = 1 + static_cast<std::uint32_t>(choices_.int_below(std::max(most, 1)));
    redundancy.set_size = choices_.one_of<std::uint32_t>({2, 3, 4, 8});
    if (redundancy.scheme == Scheme::rs) redundancy.set_size = std::max(redundancy.set_size, redundancy.parity + 1);
    job_.pieces.bytes = choices_.one_of<std::uint64_t>({0, 4096, 5000, 65537});
    const std::uint32_t kept_before = options.store.keep;
    options.store.keep = choices_.one_of<std::uint32_t>({1, 1, 2, 3});
    keep_ = std::min(kept_before, options.store.keep);
    options.persistent.every = choices_.one_of<std::uint64_t>({0, 0, 1, 2});
    options.pipeline.mode = choices_.one_of({PipelineMode::inline_, PipelineMode::background});
    options.open.buffer_bytes = choices_.one_of<std::uint64_t>({1U << 20U, 16U << 20U});
    options.store.on_exit = choices_.one_of({OnExit::keep, OnExit::keep, OnExit::remove_if_persistent});
    if (harm_ == ElasticHarm::damage) {
      options.open.verify = choices_.one_of({Verify::all, Verify::all, Verify::loaded, Verify::headers});
    }
    job_.ranks = start_.ranks;
    job_.nodes = start_.nodes;
  }

  void draw_start(bool first) {
    start_.commits = first ? 1 + choices_.int_below(2) : choices_.int_below(3);
    start_.opens = first || !choices_.one_in(12);
    start_.restores_again = choices_.one_in(3);
    start_.waits = choices_.one_in(2);
    start_.finalizes = choices_.one_in(2);
    start_.dies = !first && harm_ == ElasticHarm::deaths && choices_.one_in(2);
    start_.selection = latest;
    const auto held = oracle_.look(start_.node_set());
    if (held.empty() || !choices_.one_in(6)) return;
    const Tag tag = choices_.one_of(held).tag;
    start_.selection = choices_.one_in(2) ? Selection(tag) : Selection(Before{tag});
  }

  void plan_death() {
    const int rank = choices_.int_below(start_.ranks);
    if (choices_.one_in(2)) {
      const std::uint64_t n = 1 + choices_.below(80);
      job_.disk.stop_world_after(rank, n, n);
      job_.kill_all_ranks = choices_.one_in(3);
      tell(compose("rank {} dies in operation {}{}", rank, n, job_.kill_all_ranks ? " and all with it" : ""));
    } else {
      const std::uint64_t event = choices_.below(250);
      const auto kind = choices_.one_of({testing::StopKind::die, testing::StopKind::stop});
      job_.plan = [rank, event, kind](testing::InProcessWorld& world) { world.stop_at(rank, event, kind); };
      tell(compose("rank {} ends at event {}", rank, event));
    }
  }

  ElasticHarm harm_;
  RandomChoices choices_;
  std::string told_;
  SimulatedJob job_;
  DiskOracle oracle_;
  ElasticStart start_;
  ElasticPromise promise_;
  std::set<std::string> lost_;  ///< since the last start
  std::uint64_t rows_ = 0;
  std::uint32_t keep_ = 1;  ///< of this start and the last: that one may have given up more
  int next_step_ = 1;
  bool prefix_is_damaged_ = false;
  bool is_lazy_ = false;  ///< the disk does not tell what a start must find: it did not read all, or files changed
  bool ended_ = false;
};

}  // namespace kedge::faults
