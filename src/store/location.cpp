#include "store/location.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "kedge/error.hpp"

namespace kedge::store {
namespace {

constexpr std::uint32_t kOthersMask = 077;

[[noreturn]] void refuse(std::string message, const std::string& path) {
  throw Error(Failure{ErrorCode::io, std::move(message), -1, path, 0});
}

void check_private(fs::FileSystem& file_system, const std::string& directory) {
  const auto status = file_system.status(directory);
  if (!status || status->kind != fs::FileStatus::Kind::directory) {
    refuse("the path of the node-local store exists and is not a directory; remove it or set store.path", directory);
  }
  if (status->owner != file_system.user()) {
    refuse(compose("the node-local store belongs to user {}, not to this process (user {}); set store.path to a "
                   "directory of your own",
                   status->owner, file_system.user()),
           directory);
  }
  if ((status->mode & kOthersMask) != 0) {
    refuse(compose("the node-local store is open to other users (mode {:04o}); run chmod 700 on it if its content "
                   "is yours, or set store.path",
                   status->mode),
           directory);
  }
}

/// Usable as a parent: a directory that exists.
bool is_directory(fs::FileSystem& file_system, const std::string& path) {
  const auto status = file_system.status(path);
  return status && status->kind == fs::FileStatus::Kind::directory;
}

std::string choose_root(fs::FileSystem& file_system, const Surroundings& surroundings) {
  if (!surroundings.configured.empty()) {
    std::string root = expand_node(surroundings.configured, surroundings.node);
    ensure_directory(file_system, root, 0700);
    return root;
  }
  // Memory first: copies into it run at memory speed. Else the first place that exists.
  const std::string* fallback = nullptr;
  for (const std::string& candidate : surroundings.candidates) {
    if (!is_directory(file_system, candidate)) continue;
    if (file_system.space(candidate).memory_backed) return candidate;
    if (fallback == nullptr) fallback = &candidate;
  }
  if (fallback == nullptr) {
    throw Error(ErrorCode::io, "no node-local directory was found for the store; set store.path (KEDGE_STORE_PATH)");
  }
  return *fallback;
}

}  // namespace

std::string expand_node(std::string_view path, std::string_view node) {
  static constexpr std::string_view kPlaceholder = "{node}";
  std::string expanded;
  for (std::size_t at = path.find(kPlaceholder); at != std::string_view::npos; at = path.find(kPlaceholder)) {
    expanded.append(path.substr(0, at)).append(node);
    path.remove_prefix(at + kPlaceholder.size());
  }
  return expanded.append(path);
}

void ensure_directory(fs::FileSystem& file_system, const std::string& path, std::uint32_t mode) {
  // A parent that is a link to a directory is the user's own arrangement and fine; the last component is checked
  // by whoever puts files there.
  for (std::size_t slash = path.find('/', 1); slash != std::string::npos; slash = path.find('/', slash + 1)) {
    const std::string parent = path.substr(0, slash);
    if (!parent.empty() && parent.back() != '/' && !file_system.status(parent))
      file_system.make_directory(parent, mode);
  }
  if (!file_system.status(path)) file_system.make_directory(path, mode);
}

Location locate(fs::FileSystem& file_system, const Surroundings& surroundings, std::string_view run) {
  const std::string root = choose_root(file_system, surroundings);
  Location location;
  location.directory = fs::join(root, compose("kedge-{}-{}", file_system.user(), run));
  if (surroundings.configured.empty() && surroundings.nodes_share_candidates) {
    // No run's name has an @, so no other run's directory is called like that.
    std::string node = surroundings.node;
    std::ranges::replace(node, '/', '-');
    location.directory += "@" + node;
  }
  file_system.make_directory(location.directory, 0700);
  check_private(file_system, location.directory);
  location.memory_backed = file_system.space(location.directory).memory_backed;
  return location;
}

}  // namespace kedge::store
