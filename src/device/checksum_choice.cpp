#include "device/checksum_choice.hpp"

#include <algorithm>
#include <bit>
#include <string>
#include <utility>

#include "base/attempt.hpp"
#include "base/checksum.hpp"
#include "base/text.hpp"
#include "kedge/error.hpp"

namespace kedge::device {
namespace {

// About as many as the blocks of threads that an H100 or H200 has room for at once, two on each of its 132 processors.
constexpr std::uint64_t kPieces = 256;
constexpr std::uint64_t kPieceBytesMin = std::uint64_t{256} << 10U;

std::uint64_t piece_bytes(std::uint64_t size_bytes, std::uint64_t block_bytes) {
  return std::min(block_bytes, std::max(kPieceBytesMin, std::bit_floor(size_bytes / kPieces)));
}

double seconds_of(Checksums& device, std::span<const std::byte> memory, std::uint64_t block_bytes,
                  std::vector<std::uint32_t>& found) {
  const auto begun = std::chrono::steady_clock::now();
  begin_blocks(device, memory, block_bytes);
  found = finish_blocks(device, memory.size(), block_bytes);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
}

}  // namespace

void begin_blocks(Checksums& device, std::span<const std::byte> memory, std::uint64_t block_bytes) {
  device.begin(memory, piece_bytes(memory.size(), block_bytes));
}

std::vector<std::uint32_t> finish_blocks(Checksums& device, std::uint64_t size_bytes, std::uint64_t block_bytes) {
  const std::vector<std::uint32_t> pieces = device.finish();
  const std::uint64_t piece = piece_bytes(size_bytes, block_bytes);
  const std::uint64_t each = block_bytes / piece;
  std::vector<std::uint32_t> blocks;
  blocks.reserve(pieces.size() / each + 1);
  for (std::uint64_t i = 0; i < pieces.size(); ++i) {
    if (i % each == 0) blocks.push_back(0);
    blocks.back() = crc32c_combine(blocks.back(), pieces[i], std::min(piece, size_bytes - i * piece));
  }
  return blocks;
}

ChecksumChoice::ChecksumChoice(std::shared_ptr<Devices> devices, Told told)
    : devices_(std::move(devices)), told_(std::move(told)) {}

void ChecksumChoice::release() { choices_.clear(); }

Checksums* ChecksumChoice::on_device(const Location& location) {
  const auto found = std::ranges::find(choices_, location, &Choice::location);
  return found == choices_.end() ? nullptr : found->device.get();
}

bool ChecksumChoice::is_open(const Location& location) const noexcept {
  return std::ranges::find(choices_, location, &Choice::location) == choices_.end();
}

void ChecksumChoice::measure(const Location& location, std::span<const std::byte> memory, std::uint64_t block_bytes,
                             std::span<const std::uint32_t> of_host, HostTime host_time) {
  std::unique_ptr<Checksums> device;
  const auto failure = attempt([&] { device = chosen(location, memory, block_bytes, of_host, host_time); });
  if (failure && failure->code == ErrorCode::device_failed) throw Error(*failure);
  if (failure && told_) {
    told_(failure->code == ErrorCode::corrupt ? LogLevel::warning : LogLevel::info,
          compose("checksums of memory of GPU {} are computed on the host: {}", location.ordinal, failure->message));
  }
  choices_.push_back({location, std::move(device)});
}

/// What is chosen: the device's, or null for the host.
std::unique_ptr<Checksums> ChecksumChoice::chosen(const Location& location, std::span<const std::byte> memory,
                                                  std::uint64_t block_bytes, std::span<const std::uint32_t> of_host,
                                                  HostTime host_time) const {
  auto device = devices_->checksums(location);
  std::vector<std::uint32_t> found;
  (void)seconds_of(*device, memory, block_bytes, found);  // the first time takes longer
  const double device_s = seconds_of(*device, memory, block_bytes, found);
  if (!std::ranges::equal(found, of_host)) {
    throw Error(ErrorCode::corrupt, "what the GPU computes differs from what the host does");
  }
  const bool is_chosen = !host_time || device_s < host_time->count();
  if (told_) {
    const auto rate = [&](double seconds) {
      return static_cast<double>(memory.size()) / 1e9 / std::max(seconds, 1e-9);
    };
    const std::string of_device = compose("checksums of memory of GPU {} are computed {}: {:.1f} GB/s there",
                                          location.ordinal, is_chosen ? "by the GPU" : "on the host", rate(device_s));
    told_(LogLevel::info,
          host_time ? compose("{}, {:.1f} GB/s on the host", of_device, rate(host_time->count())) : of_device);
  }
  return is_chosen ? std::move(device) : nullptr;
}

}  // namespace kedge::device
