#include "engine/store_loss.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/attempt.hpp"
#include "base/text.hpp"
#include "store/location.hpp"

namespace kedge::engine {
namespace {

enum class Lost : std::uint8_t { nothing, files, lock, directory };

Lost find_loss(const start::NodeHandles& node, fs::FileSystem* file_system) {
  Lost lost = Lost::nothing;
  (void)attempt([&] {
    if (!node.lock->is_held()) lost = Lost::lock;
    else if (node.store->files.has_missing_files()) lost = Lost::files;
    if (lost != Lost::lock || file_system == nullptr) return;
    if (!file_system->status(node.store->directory.path())) lost = Lost::directory;
  });
  return lost;
}

std::string_view part(Lost lost) {
  switch (lost) {
    case Lost::directory: return "the directory of the node-local store";
    case Lost::lock: return "the lock file of the node-local store";
    default: return "files of the node-local store";
  }
}

std::string warning_of(const std::string& what, std::uint64_t ranks) {
  return compose(
      "another process removed {} while the job was running{}: the removed files count as lost, as if the node had "
      "failed; new checkpoints are written there again. If logind removes the files of users who log out, ask an "
      "administrator to set RemoveIPC=no or to enable lingering (loginctl enable-linger); if a cleaner did it, set "
      "store.path to a directory that it leaves alone",
      what, ranks > 1 ? compose(" (seen by {} ranks)", ranks) : "");
}

}  // namespace

/// Local. A second rank of the node finds the directory and the owner's record in place.
void StoreRecreation::restore() const {
  const std::string& directory = node.store->directory.path();
  store::recreate_store(file_system, directory);
  if (durable) fs::sync_parent_directories(file_system, directory);
  node.lock->retake_lock(clock);
  if (!node.records->is_owned_by(node.owner.run_id, node.owner.prefix_id)) node.records->write_owner(node.owner);
  markers.store_lost();
}

bool has_lost_store(const start::NodeHandles& node) { return find_loss(node, nullptr) != Lost::nothing; }

void StoreRecreation::run() const {
  const Lost lost = find_loss(node, &file_system);
  const std::uint64_t ranks = group.sum(lost == Lost::nothing ? 0 : 1);
  if (ranks == 0) return;
  std::optional<std::string> mine;
  if (lost != Lost::nothing) {
    mine = compose("{} ({}, rank {})", part(lost), node.store->directory.path(), group.rank());
  }
  const std::string what = group.text_of_lowest_rank(mine);
  const auto failure = group.try_on_all_ranks([&] {
    if (lost > Lost::files) restore();
  });
  if (group.is_root()) log.warning(warning_of(what, ranks));
  comm::throw_if(failure);
}

}  // namespace kedge::engine
