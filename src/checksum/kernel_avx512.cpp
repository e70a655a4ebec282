// 512 bits at a time: x86-64 with AVX-512 and VPCLMULQDQ (Intel since Ice Lake, AMD since Zen 4).
#ifdef __x86_64__
#include "checksum/fold_x86.hpp"
#include "checksum/kernels.hpp"

#define KEDGE_TARGET_AVX512 __attribute__((target("sse4.2,pclmul,avx2,vpclmulqdq,avx512f,avx512dq")))

namespace kedge::checksum {
namespace {

template <CacheUse stores>
KEDGE_TARGET_AVX512 inline void store_512(std::byte* to, __m512i value) noexcept {
  if constexpr (stores == CacheUse::bypass_caches) {
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to), value);  // NOLINT(*-reinterpret-cast)
  } else {
    _mm512_storeu_si512(to, value);
  }
}

/// Loads the XOR of the sources at `at` and stores it.
template <CacheUse stores, bool combines>
KEDGE_TARGET_AVX512 inline __m512i take_512(std::byte* to, const std::byte* first, Sources more,
                                            std::size_t at) noexcept {
  __m512i value = _mm512_loadu_si512(first + at);
  if constexpr (combines) {
    for (const std::byte* source : more) value = _mm512_xor_si512(value, _mm512_loadu_si512(source + at));
  }
  store_512<stores>(to + at, value);
  return value;
}

KEDGE_TARGET_AVX512 inline __m512i fold_512(__m512i x, __m512i factors, __m512i next) noexcept {
  constexpr int kXorOfThree = 0x96;
  const __m512i first = _mm512_clmulepi64_epi128(x, factors, 0x00);
  const __m512i second = _mm512_clmulepi64_epi128(x, factors, 0x11);
  return _mm512_ternarylogic_epi64(first, second, next, kXorOfThree);
}

KEDGE_TARGET_AVX512 inline __m128i fold_quarters(__m128i before, __m512i x) noexcept {
  before = fold_into_next(before, _mm512_extracti64x2_epi64(x, 0));
  before = fold_into_next(before, _mm512_extracti64x2_epi64(x, 1));
  before = fold_into_next(before, _mm512_extracti64x2_epi64(x, 2));
  return fold_into_next(before, _mm512_extracti64x2_epi64(x, 3));
}

template <CacheUse stores, bool combines>
KEDGE_TARGET_AVX512 std::uint32_t pass_512(std::byte* to, Sources from, std::size_t size, std::uint32_t crc) noexcept {
  constexpr std::size_t kStep = 256;
  const std::byte* const first = from.front();
  const Sources more = from.subspan(1);
  constexpr std::int64_t kFirst = first_factor(8 * kStep);
  constexpr std::int64_t kSecond = second_factor(8 * kStep);
  const __m512i factors = _mm512_set_epi64(kSecond, kFirst, kSecond, kFirst, kSecond, kFirst, kSecond, kFirst);
  __m512i w = take_512<stores, combines>(to, first, more, 0);
  __m512i x = take_512<stores, combines>(to, first, more, 64);
  __m512i y = take_512<stores, combines>(to, first, more, 128);
  __m512i z = take_512<stores, combines>(to, first, more, 192);
  w = _mm512_xor_si512(w, _mm512_zextsi128_si512(_mm_cvtsi32_si128(static_cast<int>(~crc))));
  for (std::size_t at = kStep; at < size; at += kStep) {
    for (const std::byte* source : from) {
      for (std::size_t line = 0; line < kStep; line += kLineBytes) {
        _mm_prefetch(source + at + line + kPrefetchDistanceBytes, _MM_HINT_T0);
      }
    }
    w = fold_512(w, factors, take_512<stores, combines>(to, first, more, at));
    x = fold_512(x, factors, take_512<stores, combines>(to, first, more, at + 64));
    y = fold_512(y, factors, take_512<stores, combines>(to, first, more, at + 128));
    z = fold_512(z, factors, take_512<stores, combines>(to, first, more, at + 192));
  }
  if constexpr (stores == CacheUse::bypass_caches) _mm_sfence();
  return reduce_to_crc(fold_quarters(fold_quarters(fold_quarters(fold_quarters(_mm_setzero_si128(), w), x), y), z));
}

}  // namespace

Kernel avx512_kernel() noexcept {
  const bool is_supported = __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512dq") != 0 &&
                            __builtin_cpu_supports("vpclmulqdq") != 0 && __builtin_cpu_supports("pclmul") != 0;
  return {"avx512",
          is_supported,
          pass_512<CacheUse::through_caches, false>,
          pass_512<CacheUse::bypass_caches, false>,
          pass_512<CacheUse::through_caches, true>,
          pass_512<CacheUse::bypass_caches, true>};
}

}  // namespace kedge::checksum
#endif
