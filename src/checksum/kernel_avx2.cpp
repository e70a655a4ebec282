// 256 bits at a time: x86-64 with AVX2 and VPCLMULQDQ (AMD since Zen 3, Intel since Alder Lake, with AVX-512 or
// without).
#ifdef __x86_64__
#include "checksum/fold_x86.hpp"
#include "checksum/kernels.hpp"

#define KEDGE_TARGET_AVX2 __attribute__((target("sse4.2,pclmul,avx2,vpclmulqdq")))

namespace kedge::checksum {
namespace {

KEDGE_TARGET_AVX2 inline __m256i load_256(const std::byte* from) noexcept {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));  // NOLINT(*-reinterpret-cast)
}

template <CacheUse stores>
KEDGE_TARGET_AVX2 inline void store_256(std::byte* to, __m256i value) noexcept {
  auto* place = reinterpret_cast<__m256i*>(to);  // NOLINT(*-reinterpret-cast)
  if constexpr (stores == CacheUse::bypass_caches) _mm256_stream_si256(place, value);
  else _mm256_storeu_si256(place, value);
}

/// Loads the XOR of the sources at `at` and stores it.
template <CacheUse stores, bool combines>
KEDGE_TARGET_AVX2 inline __m256i take_256(std::byte* to, const std::byte* first, Sources more,
                                          std::size_t at) noexcept {
  __m256i value = load_256(first + at);
  if constexpr (combines) {
    for (const std::byte* source : more) value = _mm256_xor_si256(value, load_256(source + at));
  }
  store_256<stores>(to + at, value);
  return value;
}

KEDGE_TARGET_AVX2 inline __m256i fold_256(__m256i x, __m256i factors, __m256i next) noexcept {
  const __m256i first = _mm256_clmulepi64_epi128(x, factors, 0x00);
  const __m256i second = _mm256_clmulepi64_epi128(x, factors, 0x11);
  return _mm256_xor_si256(_mm256_xor_si256(first, second), next);
}

KEDGE_TARGET_AVX2 inline __m128i fold_halves(__m128i before, __m256i x) noexcept {
  return fold_into_next(fold_into_next(before, _mm256_castsi256_si128(x)), _mm256_extracti128_si256(x, 1));
}

template <CacheUse stores, bool combines>
KEDGE_TARGET_AVX2 std::uint32_t pass_256(std::byte* to, Sources from, std::size_t size, std::uint32_t crc) noexcept {
  constexpr std::size_t kStep = 128;
  const std::byte* const first = from.front();
  const Sources more = from.subspan(1);
  const __m256i factors = _mm256_set_epi64x(second_factor(8 * kStep), first_factor(8 * kStep), second_factor(8 * kStep),
                                            first_factor(8 * kStep));
  __m256i w = take_256<stores, combines>(to, first, more, 0);
  __m256i x = take_256<stores, combines>(to, first, more, 32);
  __m256i y = take_256<stores, combines>(to, first, more, 64);
  __m256i z = take_256<stores, combines>(to, first, more, 96);
  w = _mm256_xor_si256(w, _mm256_set_epi64x(0, 0, 0, static_cast<std::uint32_t>(~crc)));
  for (std::size_t at = kStep; at < size; at += kStep) {
    for (const std::byte* source : from) {
      for (std::size_t line = 0; line < kStep; line += kLineBytes) {
        _mm_prefetch(source + at + line + kPrefetchDistanceBytes, _MM_HINT_T0);
      }
    }
    w = fold_256(w, factors, take_256<stores, combines>(to, first, more, at));
    x = fold_256(x, factors, take_256<stores, combines>(to, first, more, at + 32));
    y = fold_256(y, factors, take_256<stores, combines>(to, first, more, at + 64));
    z = fold_256(z, factors, take_256<stores, combines>(to, first, more, at + 96));
  }
  if constexpr (stores == CacheUse::bypass_caches) _mm_sfence();
  return reduce_to_crc(fold_halves(fold_halves(fold_halves(fold_halves(_mm_setzero_si128(), w), x), y), z));
}

}  // namespace

Kernel avx2_kernel() noexcept {
  const bool is_supported = __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("vpclmulqdq") != 0 &&
                            __builtin_cpu_supports("pclmul") != 0;
  return {"avx2",
          is_supported,
          pass_256<CacheUse::through_caches, false>,
          pass_256<CacheUse::bypass_caches, false>,
          pass_256<CacheUse::through_caches, true>,
          pass_256<CacheUse::bypass_caches, true>};
}

}  // namespace kedge::checksum
#endif
