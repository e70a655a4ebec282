// 128 bits at a time: 64-bit ARM with the instructions for CRC32 and PMULL (all servers since ARMv8.1).
#if defined(__aarch64__) && defined(__linux__)
#include <arm_acle.h>
#include <arm_neon.h>
#include <sys/auxv.h>

#include <bit>

#include "checksum/fold.hpp"
#include "checksum/kernels.hpp"

#define KEDGE_TARGET_ARM __attribute__((target("+crc+crypto")))

namespace kedge::checksum {
namespace {

// All systems of this architecture that have Linux and HDF5 are little-endian.
static_assert(std::endian::native == std::endian::little);

KEDGE_TARGET_ARM inline uint64x2_t load_arm(const std::byte* from) noexcept {
  return vreinterpretq_u64_u8(vld1q_u8(reinterpret_cast<const std::uint8_t*>(from)));  // NOLINT(*-reinterpret-cast)
}

/// Loads the XOR of the sources at `at` and stores it.
template <bool combines>
KEDGE_TARGET_ARM inline uint64x2_t take_arm(std::byte* to, const std::byte* first, Sources more,
                                            std::size_t at) noexcept {
  uint64x2_t value = load_arm(first + at);
  if constexpr (combines) {
    for (const std::byte* source : more) value = veorq_u64(value, load_arm(source + at));
  }
  vst1q_u8(reinterpret_cast<std::uint8_t*>(to + at), vreinterpretq_u8_u64(value));  // NOLINT(*-reinterpret-cast)
  return value;
}

KEDGE_TARGET_ARM inline uint64x2_t multiply_arm(std::uint64_t x, std::uint64_t factor) noexcept {
  return vreinterpretq_u64_p128(vmull_p64(static_cast<poly64_t>(x), static_cast<poly64_t>(factor)));
}

template <unsigned bits>
KEDGE_TARGET_ARM inline uint64x2_t fold_arm(uint64x2_t x, uint64x2_t next) noexcept {
  const uint64x2_t first = multiply_arm(vgetq_lane_u64(x, 0), first_factor(bits));
  const uint64x2_t second = multiply_arm(vgetq_lane_u64(x, 1), second_factor(bits));
  return veorq_u64(veorq_u64(first, second), next);
}

/// ARM has no stores that bypass the caches: the processor itself notices that whole lines are written.
template <bool combines>
KEDGE_TARGET_ARM std::uint32_t pass_arm(std::byte* to, Sources from, std::size_t size, std::uint32_t crc) noexcept {
  constexpr std::size_t kStep = 64;
  const std::byte* const first = from.front();
  const Sources more = from.subspan(1);
  uint64x2_t w = take_arm<combines>(to, first, more, 0);
  uint64x2_t x = take_arm<combines>(to, first, more, 16);
  uint64x2_t y = take_arm<combines>(to, first, more, 32);
  uint64x2_t z = take_arm<combines>(to, first, more, 48);
  w = veorq_u64(w, vsetq_lane_u64(static_cast<std::uint32_t>(~crc), vdupq_n_u64(0), 0));
  for (std::size_t at = kStep; at < size; at += kStep) {
    w = fold_arm<8 * kStep>(w, take_arm<combines>(to, first, more, at));
    x = fold_arm<8 * kStep>(x, take_arm<combines>(to, first, more, at + 16));
    y = fold_arm<8 * kStep>(y, take_arm<combines>(to, first, more, at + 32));
    z = fold_arm<8 * kStep>(z, take_arm<combines>(to, first, more, at + 48));
  }
  const uint64x2_t last = fold_arm<128>(fold_arm<128>(fold_arm<128>(w, x), y), z);
  return ~__crc32cd(__crc32cd(0, vgetq_lane_u64(last, 0)), vgetq_lane_u64(last, 1));
}

}  // namespace

Kernel arm_kernel() noexcept {
  constexpr unsigned long kPmull = 1UL << 4U;  // HWCAP_PMULL and HWCAP_CRC32 of asm/hwcap.h
  constexpr unsigned long kCrc32 = 1UL << 7U;
  const bool is_supported = (::getauxval(AT_HWCAP) & (kPmull | kCrc32)) == (kPmull | kCrc32);
  return {"arm", is_supported, pass_arm<false>, pass_arm<false>, pass_arm<true>, pass_arm<true>};
}

}  // namespace kedge::checksum
#endif
