#include "start/store_warnings.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/attempt.hpp"
#include "base/text.hpp"
#include "persist/prefix_runs.hpp"

namespace kedge::start {

void warn_of_missing_roots(const comm::Group& group, const GivenRoot& mine, const Log& log) {
  const auto count = [](bool does) { return std::uint64_t{does ? 1U : 0U}; };
  const auto nodes = group.sum(std::array{count(mine.counts && mine.is_given), count(mine.counts && !mine.is_given)});
  if (nodes[0] == 0 || nodes[1] == 0) return;
  const bool lacks = mine.counts && !mine.is_given;
  const std::string where = group.text_of_lowest_rank(
      lacks ? std::optional(compose("node {} (its store lies in {})", mine.node, mine.directory)) : std::nullopt);
  if (!group.is_root()) return;
  log.warning(compose(
      "store.path is not set for {}{}, but is for {} other{}: have the launcher pass KEDGE_STORE_PATH to every node "
      "(Open MPI: mpirun -x KEDGE_STORE_PATH), or set it in kedge.toml",
      where, nodes[1] > 1 ? compose(" and {} more", nodes[1] - 1) : "", nodes[0], nodes[0] > 1 ? "s" : ""));
}

void warn_of_scavenged_stores(fs::FileSystem& file_system, const persist::RecordDirectory& records, const Log& log) {
  const std::string copies = persist::scavenge_directory(records.path());
  std::vector<std::string> names;
  (void)attempt([&] { names = file_system.list(copies); });
  if (std::ranges::none_of(names, [](const std::string& name) { return name.starts_with(persist::kScavengedNode); }))
    return;
  log.warning(
      compose("stores of an earlier start were copied to {} (kedge scavenge) and have not been flushed: they may have "
              "newer checkpoints than this start finds. To use them, end this job and run kedge scavenge --finish {} "
              "--run {}",
              copies, shell_word(records.prefix()), records.run()));
}

}  // namespace kedge::start
