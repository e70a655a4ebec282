#include "persist/prefix_storage.hpp"

#include "base/attempt.hpp"
#include "base/text.hpp"

namespace kedge::persist {
namespace {

void remove_all(PrefixRemover& remover, const Leftover& remains) {
  for (std::uint32_t rank = 0; rank < remains.ranks; ++rank) {
    (void)remover.remove_container(remains.name, LogicalRank{rank}, {});
  }
  remover.clear(remains.name);
}

}  // namespace

void PrefixRemover::remove(const TagEntry& entry) {
  retract(entry);
  remove_all(*this, {entry.directory, entry.commit.world_size});
}

std::vector<std::string> PrefixRemover::sweep(const Id128& run_id) {
  Leftovers left = leftovers(run_id);
  for (const Leftover& one : left.remains) {
    const auto failure = attempt([&] { remove_all(*this, one); });
    if (!failure) continue;
    if (failure->code == ErrorCode::busy) throw Error(*failure);
    left.problems.push_back(compose("{}: {}", one.name, to_string(*failure)));
  }
  return std::move(left.problems);
}

}  // namespace kedge::persist
