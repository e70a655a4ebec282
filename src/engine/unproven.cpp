#include "engine/unproven.hpp"

#include <vector>

#include "base/text.hpp"

namespace kedge::engine {

void Unproven::note_read(const format::PlacedRegion& region) {
  const std::lock_guard guard(mutex_);
  read_.insert(region.spec.name);
}

std::uint64_t Unproven::bytes_left(const format::ContainerReader& container) const {
  const std::lock_guard guard(mutex_);
  return container.rest_bytes([&](const format::PlacedRegion& region) { return read_.contains(region.spec.name); });
}

void Unproven::require_rest(const format::ContainerReader& container, const std::string& path) const {
  const std::lock_guard guard(mutex_);
  const std::vector<format::Damage> damages =
      container.verify_rest([&](const format::PlacedRegion& region) { return read_.contains(region.spec.name); });
  if (damages.empty()) return;
  const format::Damage& first = damages.front();
  throw Error(Failure{ErrorCode::corrupt,
                      compose("{} is damaged within bytes {} to {} of the file: its checksum is wrong", first.what,
                              first.offset, first.offset + first.length - 1),
                      -1, path, 0});
}

}  // namespace kedge::engine
