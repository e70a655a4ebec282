#include "engine/store_io.hpp"

#include "base/attempt.hpp"
#include "base/text.hpp"
#include "base/units.hpp"

namespace kedge::engine {
namespace {

// What direct writes must gain before they are worth it: less than this is noise.
constexpr double kGain = 1.1;

std::string rate(double bytes_per_s) { return human_bytes(static_cast<std::uint64_t>(bytes_per_s)) + "/s"; }

/// Local, rank 0.
bool measure(fs::FileSystem& file_system, const Options::Store& options, const store::NodeStore& store,
             const Log& log) {
  const std::string& directory = store.directory();
  fs::WriteProbe probe;
  const auto failure = attempt([&] { probe = file_system.probe_writes(directory, "probe-of-writes"); });
  if (failure) probe = {0, 0, to_string(*failure)};
  if (!probe.refusal.empty()) {
    log.info(compose("store {}: large writes go through the page cache; direct writes are unavailable: {}", directory,
                     probe.refusal));
    return false;
  }
  const bool faster = probe.direct_bytes_per_s >= kGain * probe.buffered_bytes_per_s;
  const bool direct = options.io == StoreIo::direct || faster;
  log.info(compose("store {}: large writes go {}; measured with sync: direct {}, through the page cache {}", directory,
                   direct ? "direct, past the page cache" : "through the page cache", rate(probe.direct_bytes_per_s),
                   rate(probe.buffered_bytes_per_s)));
  return direct;
}

}  // namespace

void choose_store_io(const comm::Group& group, fs::FileSystem& file_system, const Options::Store& options,
                     store::NodeStore& store, const Log& log) {
  // What need not be synced the page cache takes at the speed of memory: no device is faster.
  if (options.io == StoreIo::buffered || (options.io == StoreIo::automatic && !options.durable)) return;
  bool direct = group.is_root() && !store.memory_backed() && measure(file_system, options, store, log);
  group.broadcast(direct);
  if (direct) store.write_directly();
}

}  // namespace kedge::engine
