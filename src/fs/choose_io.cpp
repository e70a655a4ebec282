#include "fs/choose_io.hpp"

#include "base/attempt.hpp"
#include "base/text.hpp"
#include "base/units.hpp"

namespace kedge::fs {
namespace {

// A smaller gain of direct writes is noise.
constexpr double kGain = 1.1;

std::string rate(double bytes_per_s) { return human_bytes(static_cast<std::uint64_t>(bytes_per_s)) + "/s"; }

}  // namespace

ChosenIo choose_io(FileSystem& file_system, Io io, const ProbeTarget& place) {
  if (io == Io::buffered) return {false, "large writes go through the page cache"};
  WriteProbe probe;
  const auto failure = attempt([&] { probe = file_system.probe_writes(place); });
  if (failure) probe = {0, 0, to_string(*failure)};
  if (!probe.refusal.empty()) {
    return {false, "large writes go through the page cache; direct writes are unavailable: " + probe.refusal};
  }
  const bool direct = io == Io::direct || probe.direct_bytes_per_s >= kGain * probe.buffered_bytes_per_s;
  return {direct, compose("large writes go {}; measured with sync: direct {}, through the page cache {}",
                          direct ? "direct, past the page cache" : "through the page cache",
                          rate(probe.direct_bytes_per_s), rate(probe.buffered_bytes_per_s))};
}

}  // namespace kedge::fs
