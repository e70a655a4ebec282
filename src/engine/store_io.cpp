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
bool decide(const Context& context) {
  const std::string& directory = context.store->directory();
  fs::WriteProbe probe;
  const auto failure =
      attempt([&] { probe = context.environment.file_system->probe_writes(directory, "probe-of-writes"); });
  if (failure) probe = {0, 0, to_string(*failure)};
  if (!probe.refusal.empty()) {
    context.log.info(compose("store {}: large writes go through the page cache; direct ones are not to be had: {}",
                             directory, probe.refusal));
    return false;
  }
  const bool faster = probe.direct_bytes_per_s >= kGain * probe.buffered_bytes_per_s;
  const bool direct = context.options.store.io == StoreIo::direct || faster;
  context.log.info(compose("store {}: large writes go {}; measured with sync: direct {}, through the page cache {}",
                           directory, direct ? "direct, past the page cache" : "through the page cache",
                           rate(probe.direct_bytes_per_s), rate(probe.buffered_bytes_per_s)));
  return direct;
}

}  // namespace

void choose_store_io(Context& context) {
  const Options::Store& store = context.options.store;
  // What need not be synced the page cache takes at the speed of memory: no device is faster.
  if (store.io == StoreIo::buffered || (store.io == StoreIo::automatic && !store.durable)) return;
  std::uint8_t direct = 0;
  if (context.is_root() && !context.store->memory_backed()) direct = decide(context) ? 1 : 0;
  context.broadcast(direct);
  if (direct != 0) context.store->write_directly();
}

}  // namespace kedge::engine
