#include "fs/choose_io.hpp"

#include <chrono>
#include <system_error>
#include <vector>

#include "base/attempt.hpp"
#include "base/text.hpp"
#include "kedge/error.hpp"

namespace kedge::fs {
namespace {

// A smaller gain of direct writes is noise.
constexpr double kRequiredGain = 1.1;

std::string rate_text(double bytes_per_s) { return human_bytes(static_cast<std::uint64_t>(bytes_per_s)) + "/s"; }

constexpr std::uint64_t kStepBytes = std::uint64_t{4} << 20U;
constexpr std::uint64_t kSteps = 4;
constexpr double kProbeSecondsMax = 0.5;

double seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

/// Seconds for writing and syncing.
double time_step(File& file, std::uint64_t step, std::span<const std::byte> bytes) {
  const double begin_s = seconds();
  (void)file.write_with_crc(step * kStepBytes, bytes, 0);
  file.sync();
  return seconds() - begin_s;
}

std::string queue_error_text(int system_errno) { return "io_uring: " + std::generic_category().message(system_errno); }

}  // namespace

IoChoice choose_io(FileSystem& file_system, Io io, const ProbeTarget& target) {
  if (io == Io::buffered) return {false, "large writes go through the page cache"};
  WriteProbe probe;
  const auto failure = attempt([&] { probe = file_system.probe_writes(target); });
  if (failure) probe = {0, 0, to_string(*failure)};
  if (!probe.refusal.empty()) {
    return {false, "large writes go through the page cache; direct writes are unavailable: " + probe.refusal};
  }
  const bool direct = io == Io::direct || probe.direct_bytes_per_s >= kRequiredGain * probe.buffered_bytes_per_s;
  return {direct, compose("large writes go {}; measured with sync: direct {}, through the page cache {}",
                          direct ? "direct, past the page cache" : "through the page cache",
                          rate_text(probe.direct_bytes_per_s), rate_text(probe.buffered_bytes_per_s))};
}

WriteProbe probe_writes(FileSystem& file_system, const ProbeTarget& target, const DirectWriter& writer) {
  const std::string path = join(target.directory, target.name);
  const bool is_fresh = target.storage == ProbeTarget::Storage::fresh;
  file_system.remove(path);  // left by a start that died here
  const auto buffered = file_system.create(path);
  if (!buffered) return {0, 0, "the file to measure with already exists"};
  const auto direct = file_system.open(path, Access::read_write);
  file_system.remove(path);
  if (!direct->enable_direct_writes()) return {0, 0, "this filesystem does not support direct writes (O_DIRECT)"};
  if (is_fresh) buffered->truncate(2 * (kSteps + 1) * kStepBytes);
  else buffered->reserve(2 * kStepBytes);
  const std::vector<std::byte> bytes(kStepBytes, std::byte{0x6b});
  // Warm-up: the first write waits for the device's earlier work, and maps recycled storage.
  double left_s = kProbeSecondsMax - time_step(*buffered, 0, bytes) - time_step(*direct, 1, bytes);
  if (writer.refusal_errno() != 0) return {0, 0, queue_error_text(writer.refusal_errno())};
  double buffered_s = 0;
  double direct_s = 0;
  std::uint64_t turns = 0;
  for (; turns == 0 || (turns < kSteps && left_s > 0); ++turns) {
    const std::uint64_t step = is_fresh ? 2 * (turns + 1) : 0;
    const double one_s = time_step(*buffered, step, bytes);
    const double other_s = time_step(*direct, step + 1, bytes);
    buffered_s += one_s;
    direct_s += other_s;
    left_s -= one_s + other_s;
  }
  const double moved = static_cast<double>(turns * kStepBytes);
  return {moved / buffered_s, moved / direct_s, {}};
}

}  // namespace kedge::fs
