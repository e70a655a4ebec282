// 128 bits at a time: x86-64 with SSE4.2 and PCLMULQDQ (every processor since 2010).
#ifdef __x86_64__
#include "checksum/fold_x86.hpp"
#include "checksum/kernels.hpp"

namespace kedge::checksum {
namespace {

KEDGE_TARGET_PCLMUL inline __m128i load_128(const std::byte* from) noexcept {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));  // NOLINT(*-reinterpret-cast)
}

template <CacheUse stores>
KEDGE_TARGET_PCLMUL inline void store_128(std::byte* to, __m128i value) noexcept {
  auto* place = reinterpret_cast<__m128i*>(to);  // NOLINT(*-reinterpret-cast)
  if constexpr (stores == CacheUse::bypass_caches) _mm_stream_si128(place, value);
  else _mm_storeu_si128(place, value);
}

/// Loads the XOR of the sources at `at` and stores it.
template <CacheUse stores, bool combines>
KEDGE_TARGET_PCLMUL inline __m128i take_128(std::byte* to, const std::byte* first, Sources more,
                                            std::size_t at) noexcept {
  __m128i value = load_128(first + at);
  if constexpr (combines) {
    for (const std::byte* source : more) value = _mm_xor_si128(value, load_128(source + at));
  }
  store_128<stores>(to + at, value);
  return value;
}

template <CacheUse stores, bool combines>
KEDGE_TARGET_PCLMUL std::uint32_t pass_128(std::byte* to, Sources from, std::size_t size, std::uint32_t crc) noexcept {
  constexpr std::size_t kStep = 64;
  const std::byte* const first = from.front();
  const Sources more = from.subspan(1);
  const __m128i factors = _mm_set_epi64x(second_factor(8 * kStep), first_factor(8 * kStep));
  __m128i w = take_128<stores, combines>(to, first, more, 0);
  __m128i x = take_128<stores, combines>(to, first, more, 16);
  __m128i y = take_128<stores, combines>(to, first, more, 32);
  __m128i z = take_128<stores, combines>(to, first, more, 48);
  w = _mm_xor_si128(w, _mm_cvtsi32_si128(static_cast<int>(~crc)));
  for (std::size_t at = kStep; at < size; at += kStep) {
    for (const std::byte* source : from) _mm_prefetch(source + at + kPrefetchDistanceBytes, _MM_HINT_T0);
    w = fold(w, factors, take_128<stores, combines>(to, first, more, at));
    x = fold(x, factors, take_128<stores, combines>(to, first, more, at + 16));
    y = fold(y, factors, take_128<stores, combines>(to, first, more, at + 32));
    z = fold(z, factors, take_128<stores, combines>(to, first, more, at + 48));
  }
  if constexpr (stores == CacheUse::bypass_caches) _mm_sfence();
  return reduce_to_crc(fold_into_next(fold_into_next(fold_into_next(w, x), y), z));
}

}  // namespace

Kernel pclmul_kernel() noexcept {
  const bool is_supported = __builtin_cpu_supports("sse4.2") != 0 && __builtin_cpu_supports("pclmul") != 0;
  return {"pclmul",
          is_supported,
          pass_128<CacheUse::through_caches, false>,
          pass_128<CacheUse::bypass_caches, false>,
          pass_128<CacheUse::through_caches, true>,
          pass_128<CacheUse::bypass_caches, true>};
}

}  // namespace kedge::checksum
#endif
