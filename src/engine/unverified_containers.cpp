#include "engine/unverified_containers.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "format/on_disk.hpp"

namespace kedge::engine {
namespace {

std::size_t blocks_of(const format::StoredRegion& region) {
  return (region.size_bytes + format::kBlockBytes - 1) / format::kBlockBytes;
}

}  // namespace

void UnverifiedContainers::mark_read(const format::StoredRegion& region) {
  const std::lock_guard guard(mutex_);
  read_[&region].assign(blocks_of(region), true);
}

void UnverifiedContainers::mark_read(const format::StoredRegion& region, std::uint64_t block) {
  const std::lock_guard guard(mutex_);
  std::vector<bool>& blocks = read_[&region];
  blocks.resize(blocks_of(region));
  blocks.at(block) = true;
}

bool UnverifiedContainers::is_read(const format::StoredRegion& region) const {
  const auto found = read_.find(&region);
  return found != read_.end() && std::ranges::find(found->second, false) == found->second.end();
}

std::uint64_t UnverifiedContainers::unread_bytes(std::span<const recovery::Holding> holdings) const {
  const std::lock_guard guard(mutex_);
  std::uint64_t bytes = 0;
  for (const recovery::Holding& holding : holdings) {
    if (!holding.is_in_store()) continue;
    bytes += holding.container().unread_bytes([&](const format::StoredRegion& region) { return is_read(region); });
  }
  return bytes;
}

void UnverifiedContainers::verify_unread(std::span<const recovery::Holding> holdings) {
  const std::lock_guard guard(mutex_);
  if (is_rest_read_) return;
  for (const recovery::Holding& holding : holdings) {
    if (!holding.is_in_store()) continue;
    const std::vector<format::Damage> damages =
        holding.container().verify_unread([&](const format::StoredRegion& region) { return is_read(region); });
    if (damages.empty()) continue;
    const format::Damage& first = damages.front();
    throw Error(Failure{ErrorCode::corrupt,
                        compose("{} is damaged within bytes {} to {} of the file: its checksum is wrong",
                                first.description, first.offset, first.offset + first.length - 1),
                        -1, holding.path(), 0});
  }
  is_rest_read_ = true;
}

}  // namespace kedge::engine
