#include "harness/random_corruption.hpp"

#include <algorithm>
#include <cerrno>
#include <map>

#include "base/text.hpp"
#include "harness/disk_oracle.hpp"

namespace kedge::faults {

RandomCorruption::RandomCorruption(SimulatedJob& job, int ranks_per_node, RandomChoices& choices, std::string& story)
    : job_(job), choices_(choices), story_(story), next_node_(job.ranks) {
  for (int rank = 0; rank < job.ranks; ++rank) node_of_rank_.push_back(compose("node{}", rank / ranks_per_node));
  place_ranks();
}

std::set<std::string> RandomCorruption::nodes() const { return {node_of_rank_.begin(), node_of_rank_.end()}; }

int RandomCorruption::most_ranks_on_a_node() const {
  std::map<std::string, int> ranks_on;
  for (const std::string& node : node_of_rank_) ++ranks_on[node];
  return std::ranges::max_element(ranks_on, {}, [](const auto& each) { return each.second; })->second;
}

void RandomCorruption::move_ranks() {
  const std::uint64_t how = choices_.below(5);
  if (how == 0) {
    std::ranges::shuffle(node_of_rank_, choices_.generator());
    tell("ranks shuffled over nodes");
  }
  if (how == 1) {
    const std::string old = choices_.one_of(node_of_rank_);
    const bool comes_back = !away_.empty() && choices_.one_in(2);
    const std::string other = comes_back ? choices_.one_of(away_) : compose("node{}", next_node_++);
    std::ranges::replace(node_of_rank_, old, other);
    std::erase(away_, other);
    away_.push_back(old);
    tell(compose("{} takes the place of {}", other, old));
  }
  place_ranks();
}

void RandomCorruption::lose_nodes() {
  const std::set<std::string> names = nodes();
  const std::vector<std::string> list(names.begin(), names.end());
  const std::uint64_t count = 1 + choices_.below(std::min<std::uint64_t>(list.size(), 4));
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::string node = choices_.one_of(list);
    job_.disk.remove_all("/nodes/" + node);
    tell("lost " + node);
  }
}

std::string RandomCorruption::some_file() {
  const auto paths = store_paths(job_.disk, nodes());
  if (paths.empty()) return {};
  const std::string path = choices_.one_of(paths);
  return job_.disk.read_all(path).empty() ? std::string{} : path;
}

void RandomCorruption::flip(const std::string& path) {
  const std::uint64_t size = job_.disk.read_all(path).size();
  // Half of them near the head, where each bit means something else.
  const std::uint64_t at = choices_.below(choices_.one_in(2) ? size : std::min<std::uint64_t>(size, 9000));
  job_.disk.flip_bit(path, at, static_cast<unsigned>(choices_.below(8)));
  tell(compose("flipped {} at {} of {}", path, at, size));
}

void RandomCorruption::cut(const std::string& path, std::uint64_t size_bytes) {
  job_.disk.truncate_from_outside(path, size_bytes);
  tell(compose("cut {} to {}", path, size_bytes));
}

void RandomCorruption::copy_another_to(const std::string& path) {
  const std::string other = choices_.one_of(store_paths(job_.disk, nodes()));
  job_.disk.write_all(path, job_.disk.read_all(other));
  tell(compose("{} becomes a copy of {}", path, other));
}

void RandomCorruption::set_back(const std::string& path) {
  if (older_.empty()) return;
  const FaultyDisk::Snapshot& older = older_[choices_.below(older_.size())];
  const auto entry = older.find(path);
  if (entry == older.end()) return;
  job_.disk.write_all(path, entry->second.bytes);
  tell("an older state of " + path);
}

void RandomCorruption::damage_files() {
  const std::uint64_t count = 1 + choices_.below(3);
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::string path = some_file();
    if (path.empty()) continue;
    switch (choices_.below(7)) {
      case 0: cut(path, choices_.below(job_.disk.read_all(path).size())); break;
      case 1: cut(path, 0); break;
      case 2:
        job_.disk.remove_all(path);
        tell("removed " + path);
        break;
      case 3: copy_another_to(path); break;
      case 4: set_back(path); break;
      default: flip(path); break;
    }
  }
}

void RandomCorruption::damage_files_in_use() {
  const std::uint64_t count = 1 + choices_.below(3);
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::string path = some_file();
    if (path.empty()) continue;
    const std::uint64_t how = choices_.below(4);
    if (how > 1) {
      flip(path);
      continue;
    }
    const std::string other = choices_.one_of(store_paths(job_.disk, nodes()));
    const auto bytes = job_.disk.read_all(other);
    job_.disk.remove_all(path);
    if (how == 1) job_.disk.write_all(path, bytes);
    tell(how == 1 ? compose("{} replaced by a copy of {}", path, other) : "removed " + path);
  }
}

void RandomCorruption::arm(const std::string& path) {
  const std::uint64_t at = choices_.below(job_.disk.read_all(path).size());
  switch (choices_.below(3)) {
    case 0: job_.disk.flip_bit_when_opened(path, at); break;
    case 1: job_.disk.flip_bit_when_verified(path, at); break;
    default: job_.disk.vanish_when_opened(path); break;
  }
  tell(compose("flips at {} or vanishes in the next start: {}", at, path));
}

void RandomCorruption::arm_files() {
  const std::uint64_t count = 1 + choices_.below(5);
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::string path = some_file();
    if (!path.empty()) arm(path);
  }
}

void RandomCorruption::plan_fault() {
  const int rank = choices_.int_below(job_.ranks);
  const std::uint64_t n = 1 + choices_.below(150);
  switch (choices_.below(4)) {
    case 0:
      job_.kill_all_ranks = choices_.one_in(2);
      job_.disk.stop_world_after(rank, n, n);
      tell(compose("rank {} will die in operation {}{}", rank, n, job_.kill_all_ranks ? ", all with it" : ""));
      break;
    case 1:
      job_.disk.fail(rank, n, choices_.one_of({EIO, ENOSPC, EDQUOT}));
      tell(compose("rank {} will fail in operation {}", rank, n));
      break;
    case 2:
      job_.disk.fail_read(rank, n, EIO);
      tell(compose("rank {} will fail in read {}", rank, n));
      break;
    default:
      job_.disk.fail_sometimes(rank, 20, ENOSPC, n);
      tell(compose("rank {} will fail sometimes", rank));
      break;
  }
}

void RandomCorruption::remember() {
  constexpr std::size_t kMost = 3;
  older_.push_back(job_.disk.snapshot());
  if (older_.size() > kMost) older_.erase(older_.begin());
}

}  // namespace kedge::faults
