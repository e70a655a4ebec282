// Limits the rate of writes.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>

#include "base/clock.hpp"
#include "fs/file_system.hpp"
#include "fs/transfer.hpp"

namespace kedge::fs {

/// One rate for all writes that share this object. Not thread-safe.
class RateLimiter {
 public:
  /// `before` is called before each piece. Once `is_over` returns true nothing is delayed: somebody waits for the end.
  RateLimiter(
      Clock& clock, double bytes_per_s, std::function<void()> before = [] {},
      std::function<bool()> is_over = [] { return false; })
      : clock_(clock), bytes_per_s_(bytes_per_s), before_piece_(std::move(before)), is_lifted_(std::move(is_over)) {}

  [[nodiscard]] double seconds_for(std::uint64_t bytes) const noexcept {
    return static_cast<double>(bytes) / bytes_per_s_;
  }
  [[nodiscard]] bool is_limited() const noexcept { return std::isfinite(bytes_per_s_); }
  /// Returns when the earlier bytes have had their time.
  void acquire(std::uint64_t bytes) {
    before_piece_();
    constexpr double kSlice_s = 0.1;
    double now_s = clock_.seconds();
    free_at_s_ = std::max(free_at_s_, now_s);
    while (now_s < free_at_s_ && !is_lifted_()) {
      clock_.sleep_for(std::chrono::duration<double>(std::min(free_at_s_ - now_s, kSlice_s)));
      now_s = clock_.seconds();
    }
    free_at_s_ += seconds_for(bytes);
  }

 private:
  Clock& clock_;
  double bytes_per_s_;
  std::function<void()> before_piece_;
  std::function<bool()> is_lifted_;
  double free_at_s_ = 0;
};

/// Writes to another file at a limited rate.
class RateLimitedAccess final : public ByteAccess {
 public:
  RateLimitedAccess(ByteAccess& to, RateLimiter& pace) : target_(to), limiter_(pace) {}

  std::uint32_t write_with_crc(std::uint64_t offset, std::span<const std::byte> bytes, std::uint32_t crc) override {
    for_each_paced_piece(bytes,
                         [&](std::uint64_t at, auto piece) { crc = target_.write_with_crc(offset + at, piece, crc); });
    return crc;
  }
  void write(std::uint64_t offset, std::span<const std::byte> bytes) override {
    for_each_paced_piece(bytes, [&](std::uint64_t at, auto piece) { target_.write(offset + at, piece); });
  }
  [[nodiscard]] std::uint32_t read_with_crc(std::uint64_t offset, std::span<std::byte> bytes,
                                            std::uint32_t crc) override {
    return target_.read_with_crc(offset, bytes, crc);
  }
  void read(std::uint64_t offset, std::span<std::byte> bytes) override { target_.read(offset, bytes); }
  [[nodiscard]] std::uint32_t checksum(std::uint64_t offset, std::uint64_t length, std::uint32_t crc) override {
    return target_.checksum(offset, length, crc);
  }

 private:
  template <class Take>
  void for_each_paced_piece(std::span<const std::byte> bytes, Take&& take) {
    for_each_piece(bytes.size(), limiter_.is_limited() ? kLimitedBytes : kUnlimitedBytes,
                   [&](std::uint64_t at, std::uint64_t length) {
                     limiter_.acquire(length);
                     take(at, bytes.subspan(at, length));
                   });
  }

  static constexpr std::size_t kLimitedBytes = std::size_t{1} << 20U;
  static constexpr std::size_t kUnlimitedBytes = std::size_t{32} << 20U;  // large enough for parallel writes

  ByteAccess& target_;
  RateLimiter& limiter_;
};

}  // namespace kedge::fs
