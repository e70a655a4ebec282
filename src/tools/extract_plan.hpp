// Pure. Selects routed files and assigns their target paths.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace kedge::tools {

/// A routed file in one rank's container.
struct RoutedFile {
  std::uint32_t rank = 0;
  std::string name;
  std::uint64_t bytes = 0;
  std::string target;         ///< relative to the output directory
  bool is_directory = false;  ///< an empty directory
};

/// Requested names; empty for all.
struct Wanted {
  std::vector<std::string> names;  ///< of files or directories
  std::optional<std::uint32_t> rank;
};

/// Sets targets: the name of a file that only one rank has; rank-<r>/<name> if several ranks have it. If targets
/// collide (a file where a directory must be), all files go below rank-<r>. `files` must contain all of the
/// checkpoint's, whatever is requested, to make targets independent of the request. Without `is_complete` (some
/// containers were unreadable), other ranks may have any of the files.
void assign_targets(std::vector<RoutedFile>& files, bool is_complete);

/// The requested files, in the order of `files`.
[[nodiscard]] std::vector<RoutedFile> select_files(const std::vector<RoutedFile>& files, const Wanted& wanted);

/// The first requested name that matches no file; nothing if all do. `files` as in assign_targets.
[[nodiscard]] std::optional<std::string> find_unmatched_name(const std::vector<RoutedFile>& files,
                                                             const Wanted& wanted);

}  // namespace kedge::tools
