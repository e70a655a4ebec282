#include "drain/placement.hpp"

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <utility>

namespace kedge::drain {
namespace {

/// Finds the newest commit: generation, world size and number of containers.
Layout newest_commit(std::span<const SeenContainer> seen) {
  struct Commit {
    std::uint32_t world_size = 0;
    std::set<std::uint32_t> ranks;
  };
  std::map<std::uint64_t, Commit, std::greater<>> commits;
  for (const auto& [process, one] : seen) {
    Commit& commit = commits[one.generation];
    commit.world_size = std::max(commit.world_size, one.world_size);
    if (one.logical_rank < one.world_size) commit.ranks.insert(one.logical_rank);
  }
  if (commits.empty()) return {};
  const auto is_whole = [](const auto& one) { return one.second.ranks.size() == one.second.world_size; };
  auto found = std::ranges::find_if(commits, is_whole);
  if (found == commits.end()) found = commits.begin();
  const auto& [generation, commit] = *found;
  return {generation, commit.world_size, commit.ranks.size(), {}};
}

/// Assigns ranks to processes, preferring those with the fewest ranks.
class Hosts {
 public:
  Hosts(std::uint32_t world_size, int processes) : load_(static_cast<std::size_t>(processes)), hosts_(world_size) {}

  void place(std::uint32_t rank, std::span<const int> candidates) {
    const auto load_of = [&](int process) { return load_[static_cast<std::size_t>(process)]; };
    const auto lighter = [&](int a, int b) { return load_of(a) != load_of(b) ? load_of(a) < load_of(b) : a < b; };
    hosts_[rank] = *std::ranges::min_element(candidates, lighter);
    ++load_[static_cast<std::size_t>(hosts_[rank])];
  }
  [[nodiscard]] std::vector<int> take() { return std::move(hosts_); }

 private:
  std::vector<std::uint32_t> load_;
  std::vector<int> hosts_;
};

}  // namespace

std::vector<SeenContainer> find_missing(const PrefixState& prefix, std::span<const SeenContainer> seen) {
  std::vector<SeenContainer> missing;
  std::ranges::copy_if(seen, std::back_inserter(missing), [&](const SeenContainer& one) {
    const std::uint64_t generation = one.container.generation;
    return one.container.is_output ? !prefix.outputs.contains(generation) : generation > prefix.generation;
  });
  return missing;
}

Layout place_ranks(std::span<const SeenContainer> seen, int processes) {
  Layout layout = newest_commit(seen);
  struct Rank {
    std::uint64_t newest = 0;
    std::vector<int> seen_by;
  };
  std::vector<Rank> ranks(layout.world_size);
  for (const auto& [process, one] : seen) {
    if (one.world_size != layout.world_size || one.logical_rank >= layout.world_size) continue;
    Rank& rank = ranks[one.logical_rank];
    if (one.generation < rank.newest) continue;
    if (one.generation > rank.newest) rank.seen_by.clear();
    rank.newest = one.generation;
    rank.seen_by.push_back(process);
  }
  std::vector<int> all(static_cast<std::size_t>(processes));
  for (std::size_t process = 0; process < all.size(); ++process) all[process] = static_cast<int>(process);
  Hosts hosts(layout.world_size, processes);
  for (std::uint32_t rank = 0; rank < layout.world_size; ++rank) {
    if (!ranks[rank].seen_by.empty()) hosts.place(rank, ranks[rank].seen_by);
  }
  for (std::uint32_t rank = 0; rank < layout.world_size; ++rank) {
    if (ranks[rank].seen_by.empty()) hosts.place(rank, all);
  }
  layout.hosts = hosts.take();
  return layout;
}

std::vector<FlushPass> plan_flush_passes(std::span<const SeenContainer> missing, int processes) {
  std::map<std::uint32_t, std::vector<SeenContainer>> by_size;
  for (const SeenContainer& one : missing) by_size[one.container.world_size].push_back(one);
  std::vector<FlushPass> passes;
  for (const auto& [world_size, seen] : by_size) {
    FlushPass pass{place_ranks(seen, processes), 0, {}};
    for (const auto& [process, one] : seen) {
      if (one.is_output) pass.outputs.insert(one.generation);
      else pass.newest_checkpoint = std::max(pass.newest_checkpoint, one.generation);
    }
    passes.push_back(std::move(pass));
  }
  std::ranges::sort(passes, std::greater<>(),
                    [](const FlushPass& pass) { return std::pair(pass.newest_checkpoint, pass.layout.generation); });
  return passes;
}

StoredContainer newest_of(std::span<const SeenContainer> seen) {
  StoredContainer newest;
  for (const auto& [process, one] : seen) {
    if (one.generation > newest.generation) newest = one;
  }
  return newest;
}

}  // namespace kedge::drain
