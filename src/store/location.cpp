#include "store/location.hpp"

#include <algorithm>
#include <span>

#include "base/checksum.hpp"
#include "base/text.hpp"
#include "fs/tree.hpp"
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

/// Whoever else can replace a component of the way to the store can put another store in its place: links must be this
/// user's or root's, and directories that all may write must be sticky.
void require_safe_way(fs::FileSystem& file_system, const std::string& path) {
  for (std::size_t slash = path.find('/', 1);; slash = path.find('/', slash + 1)) {
    const std::string part = path.substr(0, slash);
    const auto status = file_system.status(part);
    if (status && status->kind == fs::FileStatus::Kind::link && status->owner != file_system.user() &&
        status->owner != 0) {
      refuse(compose("the way to the node-local store leads through a symbolic link of user {}; set store.path to a "
                     "directory that nobody else can replace",
                     status->owner),
             part);
    }
    if (status && fs::is_open_to_all(*status)) {
      refuse(
          compose("every user can replace the node-local store: this directory on the way to it has mode {:04o}; run "
                  "chmod o-w or chmod +t on it, or set store.path",
                  status->mode),
          part);
    }
    if (slash == std::string::npos) return;
  }
}

std::string directory_prefix(std::uint32_t user, std::string_view run) { return compose("kedge-{}-{}-", user, run); }

/// Where nodes share a root, each has its own directories. No run's name has an @.
std::string directory_suffix(const Surroundings& surroundings) {
  if (!surroundings.configured.empty() || !surroundings.nodes_share_candidates) return {};
  std::string node = surroundings.node;
  std::ranges::replace(node, '/', '-');
  return "@" + node;
}

}  // namespace

bool is_private(fs::FileSystem& file_system, const std::string& directory) {
  const auto status = file_system.status(directory);
  return status && status->kind == fs::FileStatus::Kind::directory && status->owner == file_system.user() &&
         (status->mode & kOthersMask) == 0;
}

std::string choose_root(fs::FileSystem& file_system, const Surroundings& surroundings) {
  if (!surroundings.configured.empty()) {
    std::string root = expand_node(surroundings.configured, surroundings.node);
    require_safe_way(file_system, root);  // before anything is made at the other end
    fs::make_directories(file_system, root, 0700);
    // Where links of the user's own lead to is judged as well.
    require_safe_way(file_system, file_system.canonical(root));
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

std::vector<std::string> usual_roots(const VariableLookup& variable) {
  std::vector<std::string> roots = {"/dev/shm"};
  for (const char* name : {"SLURM_TMPDIR", "TMPDIR"}) {
    if (auto directory = variable(name)) roots.push_back(*std::move(directory));
  }
  roots.emplace_back("/tmp");
  return roots;
}

std::string expand_node(std::string_view path, std::string_view node) {
  static constexpr std::string_view kPlaceholder = "{node}";
  std::string expanded;
  for (std::size_t at = path.find(kPlaceholder); at != std::string_view::npos; at = path.find(kPlaceholder)) {
    expanded.append(path.substr(0, at)).append(node);
    path.remove_prefix(at + kPlaceholder.size());
  }
  return expanded.append(path);
}

std::string directory_name(std::uint32_t user, const Surroundings& surroundings, const Owner& owner) {
  const std::uint32_t of_prefix = crc32c(std::as_bytes(std::span(owner.prefix)));
  const std::uint32_t hash = crc32c(std::as_bytes(std::span(owner.run_id.bytes)), of_prefix);
  return compose("{}{:08x}{}", directory_prefix(user, owner.run), hash, directory_suffix(surroundings));
}

bool may_be_of_run(std::string_view directory, std::uint32_t user, std::string_view run) {
  return directory.starts_with(directory_prefix(user, run));
}

Location locate(fs::FileSystem& file_system, const std::string& root, const Surroundings& surroundings,
                const Owner& owner) {
  const auto on_prefix = [&](const std::string& prefix) {
    Owner there = owner;
    there.prefix = prefix;
    return Location{fs::join(root, directory_name(file_system.user(), surroundings, there)), false, prefix};
  };
  Location location = on_prefix(owner.prefix);
  if (!file_system.status(location.directory)) {
    const auto exists = [&](const auto& former) { return is_private(file_system, on_prefix(former).directory); };
    const auto found = std::ranges::find_if(owner.former, exists);
    if (found != owner.former.end()) location = on_prefix(*found);
  }
  file_system.make_directory(location.directory, 0700);
  check_private(file_system, location.directory);
  location.memory_backed = file_system.space(location.directory).memory_backed;
  return location;
}

}  // namespace kedge::store
