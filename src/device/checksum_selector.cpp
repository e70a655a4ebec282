#include "device/checksum_selector.hpp"

#include <algorithm>
#include <bit>
#include <string>
#include <utility>

#include "base/attempt.hpp"
#include "base/invariant.hpp"
#include "base/text.hpp"
#include "checksum/crc32c.hpp"
#include "kedge/error.hpp"

namespace kedge::device {
namespace {

// About the number of thread blocks that an H100 or H200 runs at once, two on each of its 132 multiprocessors.
constexpr std::uint64_t kPieces = 256;
constexpr std::uint64_t kPieceBytesMin = std::uint64_t{256} << 10U;

std::uint64_t piece_bytes(std::uint64_t size_bytes, std::uint64_t block_bytes) {
  return std::min(block_bytes, std::max(kPieceBytesMin, std::bit_floor(size_bytes / kPieces)));
}

double seconds_of(DeviceChecksums& device, std::span<const std::byte> memory, std::uint64_t block_bytes,
                  std::vector<std::uint32_t>& found) {
  const auto begun = std::chrono::steady_clock::now();
  begin_block_checksums(device, memory, block_bytes);
  found = finish_block_checksums(device, memory.size(), block_bytes);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
}

}  // namespace

void begin_block_checksums(DeviceChecksums& device, std::span<const std::byte> memory, std::uint64_t block_bytes) {
  device.begin(memory, piece_bytes(memory.size(), block_bytes));
}

std::vector<std::uint32_t> finish_block_checksums(DeviceChecksums& device, std::uint64_t size_bytes,
                                                  std::uint64_t block_bytes) {
  const std::vector<std::uint32_t> pieces = device.finish();
  const std::uint64_t piece = piece_bytes(size_bytes, block_bytes);
  invariant(block_bytes % piece == 0, "a block has whole pieces");
  const std::uint64_t each = block_bytes / piece;
  std::vector<std::uint32_t> blocks;
  blocks.reserve(pieces.size() / each + 1);
  for (std::uint64_t i = 0; i < pieces.size(); ++i) {
    if (i % each == 0) blocks.push_back(0);
    blocks.back() = crc32c_combine(blocks.back(), pieces[i], std::min(piece, size_bytes - i * piece));
  }
  return blocks;
}

ChecksumSelector::ChecksumSelector(std::shared_ptr<Devices> devices, LogLine log)
    : devices_(std::move(devices)), log_(std::move(log)) {}

void ChecksumSelector::release() { choices_.clear(); }

DeviceChecksums* ChecksumSelector::device_checksums(const MemoryLocation& location) {
  const auto found = std::ranges::find(choices_, location, &Choice::location);
  return found == choices_.end() ? nullptr : found->device.get();
}

bool ChecksumSelector::is_measured(const MemoryLocation& location) const noexcept {
  return std::ranges::find(choices_, location, &Choice::location) != choices_.end();
}

void ChecksumSelector::measure_device(const MemoryLocation& location, std::span<const std::byte> memory,
                                      std::uint64_t block_bytes, std::span<const std::uint32_t> of_host,
                                      HostTime host_time) {
  std::unique_ptr<DeviceChecksums> device;
  const auto failure = attempt([&] { device = choose(location, memory, block_bytes, of_host, host_time); });
  if (failure && failure->code == ErrorCode::device_failed) throw Error(*failure);
  choices_.push_back({location, std::move(device)});
  if (failure && failure->code == ErrorCode::corrupt) throw Error(*failure);
  if (failure && log_) {
    log_(LogLevel::info,
         compose("checksums of GPU {} memory are computed by the host: {}", location.ordinal, failure->message));
  }
}

/// Measures and returns the device's checksums if they are faster; null for the host's.
std::unique_ptr<DeviceChecksums> ChecksumSelector::choose(const MemoryLocation& location,
                                                          std::span<const std::byte> memory, std::uint64_t block_bytes,
                                                          std::span<const std::uint32_t> of_host,
                                                          HostTime host_time) const {
  auto device = devices_->make_checksums(location);
  std::vector<std::uint32_t> found;
  (void)seconds_of(*device, memory, block_bytes, found);  // warm-up
  const double device_s = seconds_of(*device, memory, block_bytes, found);
  if (!std::ranges::equal(found, of_host)) {
    throw Error(
        ErrorCode::corrupt,
        compose("GPU {} and the host computed different CRC32Cs of the same {} bytes, so this checkpoint is not "
                "kept; if nothing changed the memory during save, check the GPU for memory errors (nvidia-smi -q "
                "-d ECC). From now on the host computes them",
                location.ordinal, memory.size()));
  }
  const bool is_chosen = !host_time || device_s < host_time->count();
  if (log_) {
    const auto rate = [&](double seconds) {
      return static_cast<double>(memory.size()) / 1e9 / std::max(seconds, 1e-9);
    };
    const std::string of_host_too = host_time ? compose(", host {:.1f} GB/s", rate(host_time->count())) : "";
    log_(LogLevel::info, compose("checksums of GPU {} memory are computed by the {} (GPU {:.1f} GB/s{})",
                                 location.ordinal, is_chosen ? "GPU" : "host", rate(device_s), of_host_too));
  }
  return is_chosen ? std::move(device) : nullptr;
}

}  // namespace kedge::device
