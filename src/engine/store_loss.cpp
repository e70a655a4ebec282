#include "engine/store_loss.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/attempt.hpp"
#include "base/text.hpp"
#include "fs/durable_path.hpp"
#include "store/location.hpp"

namespace kedge::engine {
namespace {

enum class Lost : std::uint8_t { nothing, files, lock, directory };

Lost what_is_lost(const start::Started& started, fs::FileSystem* file_system) {
  Lost lost = Lost::nothing;
  (void)attempt([&] {
    const start::NodeLocal& node = started.node;
    if (!node.lock->is_held()) lost = Lost::lock;
    else if (node.store->has_missing_files()) lost = Lost::files;
    if (lost != Lost::lock || file_system == nullptr) return;
    if (!file_system->status(node.store->directory())) lost = Lost::directory;
  });
  return lost;
}

/// Local. A second rank of the node finds the directory and the owner's record in place.
void restore(const Parts& parts) {
  const start::NodeLocal& node = parts.started.node;
  fs::FileSystem& file_system = *parts.setup.environment.file_system;
  const std::string& directory = node.store->directory();
  store::recreate_store(file_system, directory);
  if (parts.setup.options.store.durable) fs::sync_path(file_system, directory);
  node.lock->take_again(parts.clock());
  if (!node.records->is_owned_by(node.owner.run_id, node.owner.prefix_id)) node.records->write_owner(node.owner);
  parts.notes.store_lost();
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
      "another process removed {} while the job was running{}: what is gone counts as lost, as if the node had failed, "
      "and new checkpoints are written there again. If logind removes the files of users who log out, ask an "
      "administrator to set RemoveIPC=no or to enable lingering (loginctl enable-linger); if a cleaner did it, set "
      "store.path to a directory that it leaves alone",
      what, ranks > 1 ? compose(" (seen by {} ranks)", ranks) : "");
}

}  // namespace

bool has_lost_store(const start::Started& started) { return what_is_lost(started, nullptr) != Lost::nothing; }

void recreate_lost_stores(const Parts& parts) {
  const Lost lost = what_is_lost(parts.started, parts.setup.environment.file_system.get());
  const std::uint64_t ranks = parts.group.sum(lost == Lost::nothing ? 0 : 1);
  if (ranks == 0) return;
  std::optional<std::string> mine;
  if (lost != Lost::nothing) {
    mine = compose("{} ({}, rank {})", part(lost), parts.store().directory(), parts.group.rank());
  }
  const std::string what = parts.group.text_of_lowest_rank(mine);
  const auto failure = parts.group.try_on_all_ranks([&] {
    if (lost > Lost::files) restore(parts);
  });
  if (parts.group.is_root()) parts.setup.log.warning(warning_of(what, ranks));
  comm::throw_if(failure);
}

}  // namespace kedge::engine
