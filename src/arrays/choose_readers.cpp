#include "arrays/choose_readers.hpp"

#include <algorithm>

#include "base/invariant.hpp"
#include "format/on_disk.hpp"

namespace kedge::arrays {
namespace {

using format::kBlockBytes;

/// A number that looks random (SplitMix64).
std::uint64_t mixed(std::uint64_t value) noexcept {
  value += 0x9e3779b97f4a7c15U;
  value = (value ^ (value >> 30U)) * 0xbf58476d1ce4e5b9U;
  value = (value ^ (value >> 27U)) * 0x94d049bb133111ebU;
  return value ^ (value >> 31U);
}

/// The blocks that a part may touch: between its first byte and its last.
struct BlockSpan {
  std::size_t part = 0;
  std::uint64_t first = 0;
  std::uint64_t last = 0;
};

std::vector<BlockSpan> spans_of(std::span<const WantedPart> parts) {
  std::vector<BlockSpan> spans;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const Pattern& pattern = parts[i].pattern;
    if (pattern.size_bytes() == 0) continue;
    spans.push_back({i, pattern.first_stored() / kBlockBytes, (pattern.end_stored() - 1) / kBlockBytes});
  }
  std::ranges::stable_sort(spans, {}, &BlockSpan::first);
  return spans;
}

void add_once(std::vector<int>& readers, int reader) {
  const auto at = std::ranges::lower_bound(readers, reader);
  if (at == readers.end() || *at != reader) readers.insert(at, reader);
}

/// One for each process.
void merge(std::vector<ReaderChoice::Need>& needs) {
  std::ranges::sort(needs, {}, &ReaderChoice::Need::process);
  std::size_t count = 0;
  for (const ReaderChoice::Need& need : needs) {
    if (count > 0 && needs[count - 1].process == need.process) needs[count - 1].bytes += need.bytes;
    else needs[count++] = need;
  }
  needs.resize(count);
}

}  // namespace

int ReaderChoice::choose(std::span<const Need> needs, std::uint64_t block_bytes) {
  invariant(!needs.empty(), "a block that is read is wanted");
  const std::uint64_t most = std::ranges::max_element(needs, {}, &Need::bytes)->bytes;
  random_ = mixed(random_ + 1);
  const Need* chosen = nullptr;
  std::uint64_t least = 0;
  for (const Need& need : needs) {
    if (need.bytes < most - most / 2) continue;
    const std::uint64_t given = given_bytes_[need.process];
    const auto order = [&](const Need& one) { return mixed(random_ + static_cast<std::uint64_t>(one.process)); };
    if (chosen != nullptr && (given > least || (given == least && order(need) >= order(*chosen)))) continue;
    chosen = &need;
    least = given;
  }
  given_bytes_[chosen->process] += block_bytes;
  return chosen->process;
}

BlockReaders choose_readers(std::uint64_t size_bytes, std::span<const WantedPart> parts, int steward,
                            bool steward_reads, ReaderChoice& choice) {
  const std::vector<BlockSpan> spans = spans_of(parts);
  BlockReaders result;
  result.readers_of_part.resize(parts.size());
  std::vector<BlockSpan> open;
  std::vector<ReaderChoice::Need> needs;
  std::vector<std::size_t> touching;
  std::size_t next = 0;
  for (std::uint64_t block = 0; next < spans.size() || !open.empty(); ++block) {
    if (open.empty()) block = std::max(block, spans[next].first);
    for (; next < spans.size() && spans[next].first == block; ++next) open.push_back(spans[next]);
    const std::uint64_t begin = block * kBlockBytes;
    const std::uint64_t end = std::min(begin + kBlockBytes, size_bytes);
    needs.clear();
    touching.clear();
    for (const BlockSpan& span : open) {
      const std::uint64_t bytes = parts[span.part].pattern.stored_in(begin, end).size_bytes();
      if (bytes == 0) continue;
      needs.push_back({parts[span.part].process, bytes});
      touching.push_back(span.part);
    }
    std::erase_if(open, [&](const BlockSpan& span) { return span.last <= block; });
    if (needs.empty()) continue;
    merge(needs);
    const int reader = steward_reads ? steward : choice.choose(needs, end - begin);
    result.blocks.push_back({block, reader});
    for (const std::size_t part : touching) add_once(result.readers_of_part[part], reader);
  }
  return result;
}

}  // namespace kedge::arrays
