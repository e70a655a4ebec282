// Which routed files of a checkpoint are extracted, and where each goes. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace kedge::tools {

/// A routed file in the container of one rank.
struct RoutedFile {
  std::uint32_t rank = 0;
  std::string name;
  std::uint64_t bytes = 0;
  std::string target;         ///< below the output directory
  bool is_directory = false;  ///< with nothing in it
};

/// Selected files; all, if nothing is said.
struct Wanted {
  std::vector<std::string> names;  ///< of files, or of directories that they are in
  std::optional<std::uint32_t> rank;
};

/// Sets the targets: a file that one rank alone has goes by its name; one that several have, by rank-<r>/<name>, for
/// each rank. If some of these cannot lie beside each other (a file in the place of a directory), all files go below
/// rank-<r>. `files` are all of the checkpoint, whatever is wanted, so that a file's place is always the same;
/// if some containers could not be read (`is_complete` is false), each file may be one of several.
void assign_targets(std::vector<RoutedFile>& files, bool is_complete);

/// Selects the wanted files, in their order.
[[nodiscard]] std::vector<RoutedFile> select_files(const std::vector<RoutedFile>& files, const Wanted& wanted);

/// The first wanted name that stands for no file; `files` as in assign_targets. Nothing if each stands for one.
[[nodiscard]] std::optional<std::string> find_unmatched_name(const std::vector<RoutedFile>& files,
                                                             const Wanted& wanted);

}  // namespace kedge::tools
