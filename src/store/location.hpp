// Finds or makes the run's directory on this node, which nobody else can read or write.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fs/file_system.hpp"
#include "kedge/types.hpp"

namespace kedge::store {

/// Inputs of the choice of a store's location.
struct LocationOptions {
  std::string configured;               ///< store.path, or empty
  std::string node;                     ///< replaces {node}
  std::vector<std::string> candidates;  ///< directories worth trying when nothing is configured, best first
  bool nodes_share_candidates = false;  ///< several nodes on one machine: each gets a directory under its name
};

/// Whose a store is.
struct StoreOwner {
  std::string run;  ///< its name
  Id128 run_id;
  Id128 prefix_id;                                ///< of the prefix that it is on: a copy of that has another
  std::string prefix;                             ///< canonical: where the run's checkpoints lie
  std::vector<std::string> former_prefixes = {};  ///< where they lay before, newest first
};

/// The run's directory on this node and what kind of storage it lies on.
struct Location {
  std::string directory;
  bool memory_backed = false;
};

/// This user's directory, which nobody else can read or write.
[[nodiscard]] bool is_private(fs::FileSystem& file_system, const std::string& directory);

/// The value of an environment variable, if it is set.
using VariableLookup = std::function<std::optional<std::string>(const std::string& name)>;

/// Where a store may be when none is configured, best first.
[[nodiscard]] std::vector<std::string> default_roots(const VariableLookup& variable);

/// Pure: `path` with every `{node}` replaced.
[[nodiscard]] std::string expand_node(std::string_view path, std::string_view node);

/// Where stores lie side by side.
struct Root {
  std::string directory;
  std::string warning = {};  ///< for people, if there is no better place than this one
};

/// The configured directory, which is made if it is missing, or the best candidate: one in memory that can be written
/// and is not small beside the machine's memory, else the first that can be written. How full one is does not count:
/// what fills it may be this run's store. A candidate
/// where a store of this run and place lies comes before all others.
[[nodiscard]] Root choose_root(fs::FileSystem& file_system, const LocationOptions& location_options,
                               const std::string& run = {}, const Id128& prefix_id = {});

/// Pure. The name of the directory of this user's run below a root: after the place, so that it stays when the prefix
/// moves. With a `number` above 1, the directories of lower numbers belong to other prefixes by now.
[[nodiscard]] std::string directory_name(std::uint32_t user, const LocationOptions& location_options,
                                         const std::string& run, const Id128& prefix_id, std::uint32_t number = 1);

/// Pure. Whether it is such a name, of any number.
[[nodiscard]] bool is_directory_of(std::string_view name, std::uint32_t user, const LocationOptions& location_options,
                                   const std::string& run, const Id128& prefix_id);

/// Pure. Whether it is such a name, of any place and number.
[[nodiscard]] bool may_be_of_run(std::string_view name, std::uint32_t user, const LocationOptions& location_options,
                                 std::string_view run);

/// Makes or finds this user's directory of this run and place, 0700, below `root`. One whose record says that it
/// belongs to another prefix by now, and to none where this one lay before, is left to that: a prefix was copied and
/// the original moved away. Throws Error{io} if it belongs to somebody else, is a link, or is open to others; says what
/// to do.
[[nodiscard]] Location locate(fs::FileSystem& file_system, const std::string& root,
                              const LocationOptions& location_options, const StoreOwner& owner);

/// Makes a store's directory that was removed while in use anew, with what is missing of its parents. Throws as locate.
void recreate_store(fs::FileSystem& file_system, const std::string& directory);

/// Reads only. That directory, if it is there.
[[nodiscard]] std::optional<std::string> find_store(fs::FileSystem& file_system, const std::string& root,
                                                    const LocationOptions& location_options, const StoreOwner& owner);

}  // namespace kedge::store
