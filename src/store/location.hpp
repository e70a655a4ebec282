// Where on this node the run's containers lie, and that nobody else can reach them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fs/file_system.hpp"

namespace kedge::store {

/// What the engine knows when it looks for a place.
struct Surroundings {
  std::string configured;               ///< store.path, or empty
  std::string node;                     ///< replaces {node}
  std::vector<std::string> candidates;  ///< directories worth trying when nothing is configured, best first
  bool nodes_share_candidates = false;  ///< several nodes on one machine: each gets a directory under its name
};

/// The run's directory on this node and what kind of storage it lies on.
struct Location {
  std::string directory;
  bool memory_backed = false;
};

/// Pure: `path` with every `{node}` replaced.
[[nodiscard]] std::string expand_node(std::string_view path, std::string_view node);

/// Makes `path` and its missing parents; a component that exists must be a directory.
void ensure_directory(fs::FileSystem& file_system, const std::string& path, std::uint32_t mode);

/// Makes or finds this user's directory of this run, 0700, below the configured path or the best candidate.
/// Throws Error{io} if it belongs to somebody else, is a link, or is open to others; says what to do.
[[nodiscard]] Location locate(fs::FileSystem& file_system, const Surroundings& surroundings, std::string_view run);

}  // namespace kedge::store
