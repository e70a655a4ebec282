#include "engine/describe_opened.hpp"

#include <algorithm>
#include <string_view>

#include "base/text.hpp"
#include "commits/commit_names.hpp"

namespace kedge::engine {

std::string describe_opened(const recovery::Opened& opened, std::uint32_t ranks, double age_s, double took_s) {
  const CommitHead& commit = opened.commit;
  const recovery::RecoveryTotals& totals = opened.totals;
  std::string recovered;
  const auto add = [&](std::uint64_t containers, std::string_view how) {
    if (containers != 0) recovered += compose(", {} {}", containers, how);
  };
  add(totals.moved, "moved");
  add(totals.rebuilt, "rebuilt");
  add(totals.fetched, "fetched");
  add(totals.on_prefix, "on the prefix");
  if (totals.bytes != 0) recovered += compose(" ({})", human_bytes(totals.bytes));
  const std::string by = commit.world_size == ranks ? std::string() : compose(", saved by {} ranks", commit.world_size);
  return compose("opened {} (generation {}, {} old{}): {} containers in place{}; {} in all, took {}", commit.tag,
                 commit.generation, human_seconds(std::max(age_s, 0.0)), by,
                 commit.world_size - totals.moved - totals.rebuilt - totals.fetched - totals.on_prefix, recovered,
                 human_bytes(opened.total_bytes), human_seconds(took_s));
}

std::string describe_not_found(const recovery::Opened& opened) {
  if (opened.not_found.empty()) return {};
  const bool one = opened.not_found.size() == 1;
  return compose(
      "the container{} of rank{} {} {} in no store of this job's nodes, and {}. If the nodes that had {} have left for "
      "good, kedge drop on them frees their memory",
      one ? "" : "s", one ? "" : "s", commits::ranks_text(opened.not_found), one ? "is" : "are",
      opened.totals.on_prefix == 0 ? (one ? "was rebuilt" : "were rebuilt")
      : opened.totals.rebuilt == 0
          ? (one ? "is read from the parallel filesystem" : "are read from the parallel filesystem")
          : "were rebuilt or are read from the parallel filesystem",
      one ? "it" : "them");
}

std::string describe_opened(const std::string& prefix, const CommitHead& commit, std::uint64_t total_bytes,
                            double took_s) {
  return compose("opened {} (generation {}) from {} as the starting point of this run: {} containers, {}, took {}",
                 commit.tag, commit.generation, prefix, commit.world_size, human_bytes(total_bytes),
                 human_seconds(took_s));
}

}  // namespace kedge::engine
