#include "codec/xor.hpp"

#include <isa-l/raid.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <vector>

#include "kedge/error.hpp"

namespace kedge::codec {
namespace {

using Sources = std::vector<const std::byte*>;

constexpr std::size_t kAlignment = 32;  // that xor_gen requires
// xor_gen takes its length as an int; this multiple of kAlignment fits one.
constexpr std::size_t kXorBytesMax = std::size_t{1} << 30U;
constexpr std::size_t kXorBlockBytes = 4096;  // on the stack
constexpr std::size_t kWorthAlignment = 256;  // shorter spans are not worth aligning

std::size_t misalignment(const std::byte* bytes) {
  return reinterpret_cast<std::uintptr_t>(bytes) % kAlignment;  // NOLINT(*-reinterpret-cast)
}

/// Needs at least two sources and aligned pointers.
void generate_parity(std::span<std::byte> out, const Sources& sources) {
  std::vector<void*> vectors(sources.size() + 1);
  for (std::size_t done = 0; done < out.size(); done += kXorBytesMax) {
    // ISA-L's prototype lacks const; it writes to the last pointer only.
    std::ranges::transform(sources, vectors.begin(), [&](const std::byte* source) {
      return const_cast<std::byte*>(source + done);  // NOLINT(*-const-cast)
    });
    vectors.back() = out.data() + done;
    const std::size_t length = std::min(kXorBytesMax, out.size() - done);
    if (xor_gen(static_cast<int>(vectors.size()), static_cast<int>(length), vectors.data()) != 0) {
      throw Error(ErrorCode::bad_state,
                  "ISA-L's xor_gen rejected its arguments; please report this with the CPU's model");
    }
  }
}

/// For any alignment. Uses a block on the stack because `out` may be one of the sources.
void xor_sources(std::span<std::byte> out, const Sources& sources) {
  std::array<std::byte, kXorBlockBytes> sum;  // NOLINT(*-member-init): filled below
  for (std::size_t done = 0; done < out.size(); done += kXorBlockBytes) {
    const std::size_t length = std::min(kXorBlockBytes, out.size() - done);
    std::memcpy(sum.data(), sources.front() + done, length);
    for (std::size_t source = 1; source < sources.size(); ++source) {
      const std::byte* bytes = sources[source] + done;
      for (std::size_t i = 0; i < length; ++i) sum[i] ^= bytes[i];  // NOLINT(*-constant-array-index)
    }
    std::memcpy(out.data() + done, sum.data(), length);
  }
}

void xor_equal_lengths(std::span<std::byte> out, Sources sources) {
  if (out.empty()) return;
  if (sources.empty()) {
    std::ranges::fill(out, std::byte{0});
    return;
  }
  if (sources.size() == 1) {
    if (sources.front() != out.data()) std::memcpy(out.data(), sources.front(), out.size());
    return;
  }
  const std::size_t off = misalignment(out.data());
  const bool alike = std::ranges::all_of(sources, [&](const std::byte* s) { return misalignment(s) == off; });
  if (!alike || out.size() < kWorthAlignment) {
    xor_sources(out, sources);
    return;
  }
  const std::size_t head = (kAlignment - off) % kAlignment;
  xor_sources(out.first(head), sources);
  for (auto& source : sources) source += head;
  generate_parity(out.subspan(head), sources);
}

}  // namespace

void xor_into(std::span<std::byte> out, std::span<const std::span<const std::byte>> inputs) {
  std::vector<std::span<const std::byte>> longest_first(inputs.begin(), inputs.end());
  std::ranges::stable_sort(longest_first, std::ranges::greater{}, [](const auto& input) { return input.size(); });
  if (!longest_first.empty() && longest_first.front().size() > out.size()) {
    throw Error(ErrorCode::invalid_argument, "an input of an XOR is longer than its result; use a longer result");
  }
  // Each part reaches from one input's end to the next longer one's, so that its inputs have equal lengths.
  std::size_t begin = 0;
  while (begin < out.size()) {
    while (!longest_first.empty() && longest_first.back().size() <= begin) longest_first.pop_back();
    const std::size_t end = longest_first.empty() ? out.size() : longest_first.back().size();
    Sources sources(longest_first.size());
    std::ranges::transform(longest_first, sources.begin(), [&](const auto& input) { return input.data() + begin; });
    xor_equal_lengths(out.subspan(begin, end - begin), std::move(sources));
    begin = end;
  }
}

}  // namespace kedge::codec
