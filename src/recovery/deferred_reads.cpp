#include "recovery/deferred_reads.hpp"

#include <algorithm>
#include <set>

namespace kedge::recovery {
namespace {

using store::FileKind;

/// Local. The kinds of files that the orders make this process write.
std::set<FileKind> written_kinds(int rank, store::NodeStore& store, const Orders& orders) {
  std::set<FileKind> written;
  for (const MoveOrder& move : orders.moves) {
    if (move.to == rank) written.insert(move.kind);
  }
  for (const SetOrder& order : orders.sets) {
    const std::uint32_t me = order.set.position;
    if (!store.files.has_file(FileKind::descriptor, order.set.members[me].logical_rank, order.key())) {
      written.insert(FileKind::descriptor);
    }
    if (order.rebuild && !order.present.container[me]) written.insert(FileKind::container);
    if (order.rebuild && !order.present.parity[me]) written.insert(FileKind::parity);
  }
  if (!orders.fetches.empty()) written.insert(FileKind::container);
  return written;
}

}  // namespace

DeferredReads plan_deferred_reads(const comm::Group& group, store::NodeStore& store, const Candidate& chosen,
                                  const Orders& orders, bool loads) {
  // A process may have members of several sets, of which only some rebuild: their files are verified.
  const bool as_it_lies = stays_as_it_lies(chosen.commit.world_size, group);
  if (!loads && (chosen.rebuilt == 0 || as_it_lies)) return {};
  const auto written = written_kinds(group.rank(), store, orders);
  const bool overwrites =
      std::ranges::any_of(written, [&](FileKind kind) { return store.new_files.begin_would_overwrite(kind); });
  if (group.any(overwrites)) return {};
  DeferredReads later;
  const store::FileKey container{chosen.commit.id, {}};
  later.containers = loads;
  if (as_it_lies) {
    later.anyone_s.push_back(container);
    return later;
  }
  if (loads) later.files.push_back(container);
  for (const SetOrder& order : orders.sets) {
    if (!order.rebuild) continue;
    if (!loads) later.files.push_back(container);
    later.files.push_back(order.key());
  }
  return later;
}

}  // namespace kedge::recovery
