#include "persist/prefix_storage.hpp"

#include "base/attempt.hpp"
#include "base/text.hpp"

namespace kedge::persist {
namespace {

void remove_leftover(PrefixRemover& remover, const Leftover& remains) {
  for (std::uint32_t rank = 0; rank < remains.ranks; ++rank) {
    (void)remover.remove_container(remains.name, LogicalRank{rank}, {});
  }
  remover.clear_name(remains.name);
}

}  // namespace

void PrefixRemover::remove_commit(const TagEntry& entry) {
  retract(entry);
  remove_leftover(*this, {entry.directory, entry.commit.world_size});
}

std::vector<std::string> PrefixRemover::remove_leftovers(const Id128& run_id) {
  Leftovers left = find_leftovers(run_id);
  for (const Leftover& one : left.commits) {
    const auto failure = attempt([&] { remove_leftover(*this, one); });
    if (!failure) continue;
    if (failure->code == ErrorCode::busy) throw Error(*failure);
    left.problems.push_back(compose("{}: {}", one.name, to_string(*failure)));
  }
  return std::move(left.problems);
}

}  // namespace kedge::persist
