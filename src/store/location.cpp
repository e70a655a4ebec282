#include "store/location.hpp"

#include <algorithm>
#include <span>

#include "base/attempt.hpp"
#include "base/random.hpp"
#include "base/text.hpp"
#include "checksum/crc32c.hpp"
#include "fs/tree.hpp"
#include "kedge/error.hpp"
#include "store/store_record.hpp"

namespace kedge::store {
namespace {

void require_private(fs::FileSystem& file_system, const std::string& directory) {
  const auto status = file_system.status(directory);
  if (!status || status->kind != fs::FileStatus::Kind::directory) {
    refuse(ErrorCode::io, "the path of the node-local store exists and is not a directory; remove it or set store.path",
           directory);
  }
  if (status->owner != file_system.user()) {
    refuse(ErrorCode::io,
           compose("the node-local store belongs to user {}, not to this process (user {}); set store.path to a "
                   "directory of your own",
                   status->owner, file_system.user()),
           directory);
  }
  if ((status->mode & fs::kGroupOrOthersAnything) != 0) {
    refuse(ErrorCode::io,
           compose("the node-local store is open to other users (mode {:04o}); run chmod 700 on it if its content "
                   "is yours, or set store.path",
                   status->mode),
           directory);
  }
}

bool is_directory(fs::FileSystem& file_system, const std::string& path) {
  const auto status = file_system.status(path);
  return status && status->kind == fs::FileStatus::Kind::directory;
}

/// Keeps other users from exchanging the store's directory: links on the way must belong to this user or root, and
/// directories that all may write must be sticky. Other users' directories, and those that links lead through, are this
/// user's choice.
void require_trusted_parents(fs::FileSystem& file_system, const std::string& path) {
  for (std::size_t slash = path.find('/', 1);; slash = path.find('/', slash + 1)) {
    const std::string part = path.substr(0, slash);
    const auto status = file_system.status(part);
    if (status && status->kind == fs::FileStatus::Kind::link && status->owner != file_system.user() &&
        status->owner != 0) {
      refuse(
          ErrorCode::io,
          compose("the path of the node-local store goes through a symbolic link owned by user {}; set store.path to a "
                  "directory that nobody else can replace",
                  status->owner),
          part);
    }
    if (status && fs::is_writable_by_all(*status)) {
      refuse(ErrorCode::io,
             compose("every user can replace the node-local store: this directory on its path has mode {:04o}; run "
                     "chmod o-w or chmod +t on it, or set store.path",
                     status->mode),
             part);
    }
    if (slash == std::string::npos) return;
  }
}

std::string directory_prefix(std::uint32_t user, std::string_view run) { return compose("kedge-{}-{}-", user, run); }

/// Separates the directories of nodes that share a root. Run names contain no @.
std::string directory_suffix(const LocationOptions& location_options) {
  if (!location_options.configured.empty() || !location_options.nodes_share_candidates) return {};
  std::string node = location_options.node;
  std::ranges::replace(node, '/', '-');
  return "@" + node;
}

constexpr std::size_t kHashDigits = 8;
constexpr std::uint32_t kNumbersMax = 64;  // of this directory name's stores on a node; usually 1

/// A store without a valid record belongs to the owner that its name says. So does one whose record cannot be read,
/// unless a copied prefix may own it by now: original and copy look for the same name once the original has moved.
bool belongs_to(fs::FileSystem& file_system, const std::string& directory, const StoreOwner& owner) {
  StoreRecord record;
  auto failure = attempt([&] { record = read_store_record(file_system, directory); });
  if (failure && failure->code != ErrorCode::not_found && !owner.former_prefixes.empty()) {
    rethrow_with_advice(
        *std::move(failure),
        "; a copy of the prefix may own this store by now: restart once this file can be read, or remove it "
        "if the prefix was never copied");
  }
  if (record.run_id.is_none()) return true;
  if (record.run_id != owner.run_id || record.prefix_id != owner.prefix_id) return false;
  return record.prefix == owner.prefix ||
         std::ranges::find(owner.former_prefixes, record.prefix) != owner.former_prefixes.end();
}

/// The store's existing or future directory. Later checks refuse one that is not private.
std::string find(fs::FileSystem& file_system, const std::string& root, const LocationOptions& location_options,
                 const StoreOwner& owner) {
  for (std::uint32_t number = 1; number <= kNumbersMax; ++number) {
    std::string directory =
        fs::join(root, directory_name(file_system.user(), location_options, owner.run, owner.prefix_id, number));
    const bool is_another = file_system.status(directory) && is_private_directory(file_system, directory) &&
                            !belongs_to(file_system, directory, owner);
    if (!is_another) return directory;
  }
  refuse(ErrorCode::io,
         compose("{} earlier stores of this run here belong to other prefixes now; free unneeded ones with kedge drop",
                 kNumbersMax),
         root);
}

/// tmpfs usually gets half of the machine's memory, containers' /dev/shm 64 MB.
constexpr std::uint64_t kSmallShare = 16;

bool is_small_space(const fs::Space& space) {
  return space.memory_backed && space.total_bytes != 0 && space.total_bytes < space.memory_bytes / kSmallShare;
}

/// Tries to create a directory. A full filesystem counts as writable, since this run's store may be what fills it.
bool can_be_written(fs::FileSystem& file_system, const std::string& directory) {
  const std::string probe = fs::join(directory, compose("kedge-probe-{}", to_string(random_id())));
  const auto failure = attempt([&] {
    file_system.make_directory(probe, 0700);
    file_system.remove(probe);
  });
  return !failure || failure->code == ErrorCode::no_space;
}

bool has_store(fs::FileSystem& file_system, const std::string& root, const LocationOptions& location_options,
               const std::string& run, const Id128& prefix_id) {
  bool found = false;
  (void)attempt([&] {
    found =
        is_directory(file_system, root) && std::ranges::any_of(file_system.list(root), [&](const std::string& name) {
          return is_directory_of(name, file_system.user(), location_options, run, prefix_id);
        });
  });
  return found;
}

}  // namespace

bool is_private_directory(fs::FileSystem& file_system, const std::string& directory) {
  const auto status = file_system.status(directory);
  return status && status->kind == fs::FileStatus::Kind::directory && status->owner == file_system.user() &&
         (status->mode & fs::kGroupOrOthersAnything) == 0;
}

StoreRoot choose_root(fs::FileSystem& file_system, const LocationOptions& location_options, const std::string& run,
                      const Id128& prefix_id) {
  if (!location_options.configured.empty()) {
    std::string root = expand_node(location_options.configured, location_options.node);
    require_trusted_parents(file_system, root);  // before anything is made there
    fs::make_directories(file_system, root, 0700);
    // The targets of this user's own links are checked too.
    require_trusted_parents(file_system, file_system.canonical(root));
    return {root};
  }
  for (const std::string& candidate : location_options.candidates) {
    if (!prefix_id.is_none() && has_store(file_system, candidate, location_options, run, prefix_id)) return {candidate};
  }
  // Memory-backed candidates come first because copies into them run at memory speed.
  std::vector<std::string> others;
  std::vector<std::string> small;
  for (const std::string& candidate : location_options.candidates) {
    if (!is_directory(file_system, candidate) || !can_be_written(file_system, candidate)) continue;
    const fs::Space space = file_system.space(candidate);
    if (is_small_space(space)) small.push_back(candidate);
    else if (space.memory_backed) return {candidate};
    else others.push_back(candidate);
  }
  if (!others.empty()) return {others.front()};
  if (!small.empty()) {
    return {
        small.front(),
        compose(
            "the node-local store is on {}, which is small compared with the machine's memory (as in a container with "
            "the default --shm-size); set store.path (KEDGE_STORE_PATH) to a larger filesystem, or enlarge this one",
            small.front())};
  }
  throw Error(ErrorCode::io,
              "no writable node-local directory was found for the store; set store.path (KEDGE_STORE_PATH)");
}

std::vector<std::string> default_roots(const VariableLookup& variable) {
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

std::string directory_name(std::uint32_t user, const LocationOptions& location_options, const std::string& run,
                           const Id128& prefix_id, std::uint32_t number) {
  std::uint32_t hash = crc32c(std::as_bytes(std::span(prefix_id.bytes)));
  if (number > 1) hash = crc32c(std::as_bytes(std::span(&number, 1)), hash);
  return compose("{}{:08x}{}", directory_prefix(user, run), hash, directory_suffix(location_options));
}

bool is_directory_of(std::string_view name, std::uint32_t user, const LocationOptions& location_options,
                     const std::string& run, const Id128& prefix_id) {
  for (std::uint32_t number = 1; number <= kNumbersMax; ++number) {
    if (name == directory_name(user, location_options, run, prefix_id, number)) return true;
  }
  return false;
}

bool may_be_of_run(std::string_view name, std::uint32_t user, const LocationOptions& location_options,
                   std::string_view run) {
  const std::string begin = directory_prefix(user, run);
  const std::string end = directory_suffix(location_options);
  if (name.size() != begin.size() + kHashDigits + end.size() || !name.starts_with(begin) || !name.ends_with(end))
    return false;
  return name.substr(begin.size(), kHashDigits).find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

StoreLocation find_or_make_store(fs::FileSystem& file_system, const std::string& root,
                                 const LocationOptions& location_options, const StoreOwner& owner) {
  StoreLocation location{find(file_system, root, location_options, owner)};
  file_system.make_directory(location.directory, 0700);
  require_private(file_system, location.directory);
  location.memory_backed = file_system.space(location.directory).memory_backed;
  return location;
}

void recreate_store(fs::FileSystem& file_system, const std::string& directory) {
  require_trusted_parents(file_system, directory.substr(0, directory.rfind('/')));
  fs::make_directories(file_system, directory, 0700);
  require_private(file_system, directory);
}

std::optional<std::string> find_store(fs::FileSystem& file_system, const std::string& root,
                                      const LocationOptions& location_options, const StoreOwner& owner) {
  std::string directory = find(file_system, root, location_options, owner);
  if (!is_private_directory(file_system, directory)) return std::nullopt;
  return directory;
}

}  // namespace kedge::store
