#include "store/node_store.hpp"

#include <utility>

namespace kedge::store {

NodeStore::NodeStore(std::shared_ptr<fs::FileSystem> file_system, const Options::Store& options, StoreLocation location,
                     LogicalRank logical_rank, std::vector<int> ranks_on_node)
    : ranks(logical_rank, std::move(ranks_on_node)),
      directory(file_system, std::move(location), options.durable),
      space(std::move(file_system), directory, ranks, options.quota_bytes, [this] { return node_bytes(); }),
      routed_directories(directory, logical_rank),
      slots(space, ranks) {}

std::uint64_t NodeStore::node_bytes() const {
  const auto guard = slots.lock();
  std::uint64_t bytes = routed_directories.used_bytes();
  for (const auto& slot : slots.all_slots()) {
    if (slots.is_own(*slot) || slot->is_made_here) bytes += slot->size_bytes(directory);
  }
  if (ranks.ranks_on_node().size() <= 1) return bytes;
  for (const FileName& name : directory.list_files()) {
    const bool is_of_other_process = ranks.is_on_node(name.logical_rank) && name.logical_rank != ranks.own_rank();
    if (is_of_other_process) bytes += directory.stored_bytes(name);
  }
  return bytes;
}

void NodeStore::remove_leftovers() {
  space.remove_reservations();
  routed_directories.remove_leftovers();
}

void NodeStore::remove_all_files() {
  const auto guard = slots.lock();
  const auto is_ours = [this](const Slot& slot) { return !directory.is_foreign(slot.name); };
  slots.remove_if(is_ours);
  if (!directory.file_system().status(directory.path())) return;  // removed by another process
  slots.refresh(directory.list_files());                          // finds adopted files of starts that never scanned
  slots.remove_if(is_ours);
  remove_leftovers();
  directory.sync_names();  // keeps removed files from reappearing
}

}  // namespace kedge::store
