// Routed files of the open checkpoint.
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/attempt.hpp"
#include "base/text.hpp"
#include "engine/reader.hpp"
#include "fs/tree.hpp"

namespace kedge::engine {

Routed Reader::route_in(std::string_view name) {
  if (auto failure = check_reading("route_in")) return {{}, *failure};
  Route route;
  auto failure = attempt([&] {
    const std::vector<const format::StoredRegion*> regions = routed_regions(name);
    open_->require_present();
    {
      const std::lock_guard guard(mutex_);
      // Asked for again, it is extracted again: the application may have changed the first one.
      if (open_->routed.find_conflict(name) != nullptr) open_->routed.begin_directory();
      route = open_->routed.add(name, 0);
    }
    for (const format::StoredRegion* placed : regions) {
      extract(*placed, route);
      if (open_->unproven) open_->unproven->mark_read(*placed);
    }
  });
  if (failure) return {{}, remember(std::move(*failure))};
  return {route.path, {}};
}

/// Regions of a name: a file, or with a '/' at its end all that was routed in that directory.
std::vector<const format::StoredRegion*> Reader::routed_regions(std::string_view name) const {
  std::vector<const format::StoredRegion*> found;
  if (name.ends_with('/')) {
    for (const format::StoredRegion& placed : container().regions()) {
      if (placed.spec.is_routed && placed.spec.name.starts_with(name)) found.push_back(&placed);
    }
    return found;
  }
  const format::StoredRegion& placed = region(name);
  if (!placed.spec.is_routed) {
    throw Error(ErrorCode::mismatch,
                compose("region '{}' of {} is not a routed file; get it with load", name, info_->tag));
  }
  return {&placed};
}

/// Local. Extracts a routed file. A part that was written when it fails is removed by release().
void Reader::extract(const format::StoredRegion& placed, const Route& route) const {
  fs::FileSystem& file_system = uses_.file_system;
  const std::string within =
      placed.spec.name.substr(route.is_directory() ? route.name.size() : placed.spec.name.size());
  if (!within.empty()) fs::make_parents(file_system, route.path, within, 0700);
  const std::string path = route.path + within;
  if (format::is_empty_directory(placed.spec)) return file_system.make_directory(path, 0700);
  const auto file = file_system.create(path);
  if (!file)
    throw Error(Failure{ErrorCode::io,
                        "cannot extract the routed file: a file of that name exists; do not write to the directory of "
                        "routed files before route_in",
                        -1, path, 0});
  file->reserve(placed.size_bytes);
  container().read(placed, *file);
}

}  // namespace kedge::engine
