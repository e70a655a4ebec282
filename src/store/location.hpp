// Finds or makes the run's private directory on this node.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fs/file_system.hpp"
#include "kedge/types.hpp"

namespace kedge::store {

struct LocationOptions {
  std::string configured;               ///< store.path; may be empty
  std::string node;                     ///< replaces {node}
  std::vector<std::string> candidates;  ///< directories to try if `configured` is empty, best first
  bool nodes_share_candidates = false;  ///< several nodes on one machine: each uses a directory of its own
};

/// The owner of a store.
struct StoreOwner {
  std::string run;
  Id128 run_id;
  Id128 prefix_id;                                ///< of the prefix; a copy of the prefix has another id
  std::string prefix;                             ///< canonical path of the prefix
  std::vector<std::string> former_prefixes = {};  ///< earlier paths of the prefix, newest first
};

/// The run's directory on this node and its kind of storage.
struct StoreLocation {
  std::string directory;
  bool memory_backed = false;
};

/// Whether only this user can read and write the directory.
[[nodiscard]] bool is_private_directory(fs::FileSystem& file_system, const std::string& directory);

/// Returns an environment variable's value, if it is set.
using VariableLookup = std::function<std::optional<std::string>(const std::string& name)>;

/// Candidates for a store's root if none is configured, best first.
[[nodiscard]] std::vector<std::string> default_roots(const VariableLookup& variable);

/// Pure. Replaces every `{node}` in `path`.
[[nodiscard]] std::string expand_node(std::string_view path, std::string_view node);

/// The directory that contains the stores.
struct StoreRoot {
  std::string directory;
  std::string warning = {};  ///< text for the user, if a better root could not be used
};

/// Returns the configured directory, which is created if missing, or the best candidate: one with a store of this run
/// and prefix path; else the first writable one in memory that is not small beside the machine's memory; else the first
/// writable one. Free space is ignored, because this run's store may be what fills it.
[[nodiscard]] StoreRoot choose_root(fs::FileSystem& file_system, const LocationOptions& location_options,
                                    const std::string& run = {}, const Id128& prefix_id = {});

/// Pure. The name of this user's run's directory below a root. It contains the prefix's id, so that moving the prefix
/// keeps it. Numbers above 1 are used when other prefixes own the directories with lower numbers.
[[nodiscard]] std::string directory_name(std::uint32_t user, const LocationOptions& location_options,
                                         const std::string& run, const Id128& prefix_id, std::uint32_t number = 1);

/// Pure. Whether `name` is a directory_name(), with any number.
[[nodiscard]] bool is_directory_of(std::string_view name, std::uint32_t user, const LocationOptions& location_options,
                                   const std::string& run, const Id128& prefix_id);

/// Pure. Whether `name` is a directory_name(), with any prefix id and number.
[[nodiscard]] bool may_be_of_run(std::string_view name, std::uint32_t user, const LocationOptions& location_options,
                                 std::string_view run);

/// Finds or makes the directory (mode 0700) of this user, run and prefix below `root`. Skips one whose record says that
/// another prefix, which never had this one's path, owns it by now: the prefix was copied and the original moved.
/// Throws Error{io} with the remedy if the directory belongs to another user, is a link, or is accessible to others.
[[nodiscard]] StoreLocation find_or_make_store(fs::FileSystem& file_system, const std::string& root,
                                               const LocationOptions& location_options, const StoreOwner& owner);

/// Makes a store's directory again that was removed while in use, with missing parents. Throws as find_or_make_store()
/// does.
void recreate_store(fs::FileSystem& file_system, const std::string& directory);

/// Reads only. The directory that find_or_make_store() would find, if it exists.
[[nodiscard]] std::optional<std::string> find_store(fs::FileSystem& file_system, const std::string& root,
                                                    const LocationOptions& location_options, const StoreOwner& owner);

}  // namespace kedge::store
