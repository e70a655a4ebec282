#include "engine/unverified_container.hpp"

#include <vector>

#include "base/text.hpp"

namespace kedge::engine {

void UnverifiedContainer::mark_read(const format::StoredRegion& region) {
  const std::lock_guard guard(mutex_);
  read_.insert(region.spec.name);
}

std::uint64_t UnverifiedContainer::unread_bytes(const format::ContainerReader& container) const {
  const std::lock_guard guard(mutex_);
  return container.unread_bytes([&](const format::StoredRegion& region) { return read_.contains(region.spec.name); });
}

void UnverifiedContainer::verify_unread(const format::ContainerReader& container, const std::string& path) const {
  const std::lock_guard guard(mutex_);
  const std::vector<format::Damage> damages =
      container.verify_unread([&](const format::StoredRegion& region) { return read_.contains(region.spec.name); });
  if (damages.empty()) return;
  const format::Damage& first = damages.front();
  throw Error(Failure{ErrorCode::corrupt,
                      compose("{} is damaged within bytes {} to {} of the file: its checksum is wrong",
                              first.description, first.offset, first.offset + first.length - 1),
                      -1, path, 0});
}

}  // namespace kedge::engine
