#include "start/store_roots.hpp"

#include <array>
#include <cstdint>
#include <optional>

#include "base/text.hpp"

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

}  // namespace kedge::start
