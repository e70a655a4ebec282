#include "start/store_io.hpp"

#include "base/text.hpp"
#include "fs/choose_io.hpp"

namespace kedge::start {

void choose_store_io(const comm::Group& group, fs::FileSystem& file_system, const Options& options,
                     store::StoreSpace& store, const Log& log) {
  // Without sync, the page cache is as fast as memory: no device is faster.
  if (options.io == Io::buffered || (options.io == Io::automatic && !options.store.durable)) return;
  bool direct = false;
  if (group.is_root() && !store.directory().memory_backed()) {
    const fs::IoChoice chosen = fs::choose_io(file_system, options.io, {store.directory().path(), "probe-of-writes"});
    log.info(compose("store {}: {}", store.directory().path(), chosen.reason));
    direct = chosen.is_direct;
  }
  group.broadcast(direct);
  if (direct) store.enable_direct_writes();
}

}  // namespace kedge::start
