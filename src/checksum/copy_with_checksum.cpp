#include "checksum/copy_with_checksum.hpp"

#include <cstring>
#include <functional>
#include <vector>

#include "checksum/crc32c.hpp"
#include "kedge/error.hpp"

namespace kedge {
namespace {

using checksum::kStepBytes;

/// Smaller copies fit into the caches, and writing parts of cache lines past them costs more.
constexpr std::size_t kStreamBytes = std::size_t{16} << 10U;

/// A copy is made in three parts: up to the first cache line of the target, as many whole lines as kernels take, and
/// the rest.
struct AlignedParts {
  std::size_t head = 0;
  std::size_t body = 0;
};

AlignedParts align_parts(const std::byte* to, std::size_t size, bool streams) {
  if (size < kStepBytes) return {size, 0};
  const std::size_t beyond = reinterpret_cast<std::uintptr_t>(to) % kLineBytes;  // NOLINT(*-reinterpret-cast)
  const std::size_t head = streams && beyond != 0 ? kLineBytes - beyond : 0;
  return {head, (size - head) / kStepBytes * kStepBytes};
}

bool overlaps(std::span<const std::byte> a, std::span<const std::byte> b) {
  const std::less<> before;
  return !a.empty() && !b.empty() && before(a.data(), b.data() + b.size()) && before(b.data(), a.data() + a.size());
}

void require_fit(std::span<const std::byte> to, std::span<const std::byte> from, bool may_be_same) {
  if (to.size() != from.size()) {
    throw Error(ErrorCode::invalid_argument, "source and destination differ in size");
  }
  if (overlaps(to, from) && !(may_be_same && to.data() == from.data())) {
    throw Error(ErrorCode::invalid_argument, "source and destination overlap; use a separate buffer");
  }
}

std::uint32_t copy_few(std::span<std::byte> to, std::span<const std::byte> from, std::uint32_t crc) {
  if (from.empty()) return crc;
  std::memcpy(to.data(), from.data(), from.size());
  return crc32c(to, crc);  // of what was copied, since another thread may have changed `from`
}

std::uint32_t xor_few(std::span<std::byte> to, std::span<const std::byte* const> from, std::uint32_t crc) {
  for (std::size_t i = 0; i < to.size(); ++i) {
    std::byte sum{};
    for (const std::byte* source : from) sum ^= source[i];
    to[i] = sum;
  }
  return crc32c(to, crc);
}

std::uint32_t copy(std::span<std::byte> to, std::span<const std::byte> from, std::uint32_t crc, bool streams,
                   const checksum::Kernel& kernel) {
  require_fit(to, from, false);
  const auto [head, body] = align_parts(to.data(), to.size(), streams);
  const std::size_t tail = head + body;
  crc = copy_few(to.first(head), from.first(head), crc);
  const checksum::Pass pass = streams ? kernel.stream : kernel.copy;
  const std::byte* const source = from.data() + head;
  if (body != 0) crc = pass(to.data() + head, std::span(&source, 1), body, crc);
  return copy_few(to.subspan(tail), from.subspan(tail), crc);
}

std::uint32_t combine_parts(std::span<std::byte> to, std::span<const std::span<const std::byte>> from,
                            std::uint32_t crc, bool streams, const checksum::Kernel& kernel) {
  std::vector<const std::byte*> sources;
  for (const auto& source : from) {
    require_fit(to, source, true);
    sources.push_back(source.data());
  }
  const auto advance = [&](std::size_t bytes) {
    for (const std::byte*& source : sources) source += bytes;
  };
  const auto [head, body] = align_parts(to.data(), to.size(), streams);
  crc = xor_few(to.first(head), sources, crc);
  advance(head);
  const checksum::Pass pass = streams ? kernel.combine_and_stream : kernel.combine;
  if (body != 0) crc = pass(to.data() + head, sources, body, crc);
  advance(body);
  return xor_few(to.subspan(head + body), sources, crc);
}

}  // namespace

std::uint32_t copy_with_checksum(std::span<std::byte> to, std::span<const std::byte> from, std::uint32_t crc,
                                 const checksum::Kernel& kernel) {
  return copy(to, from, crc, to.size() >= kStreamBytes, kernel);
}

std::uint32_t copy_in_caches_with_checksum(std::span<std::byte> to, std::span<const std::byte> from, std::uint32_t crc,
                                           const checksum::Kernel& kernel) {
  return copy(to, from, crc, false, kernel);
}

std::uint32_t xor_with_checksum(std::span<std::byte> to, std::span<const std::span<const std::byte>> from,
                                std::uint32_t crc, const checksum::Kernel& kernel) {
  return combine_parts(to, from, crc, to.size() >= kStreamBytes, kernel);
}

std::uint32_t xor_in_caches_with_checksum(std::span<std::byte> to, std::span<const std::span<const std::byte>> from,
                                          std::uint32_t crc, const checksum::Kernel& kernel) {
  return combine_parts(to, from, crc, false, kernel);
}

}  // namespace kedge
