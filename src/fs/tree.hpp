// Directory trees. Links are never followed.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "fs/file_system.hpp"

namespace kedge::fs {

/// A file below a directory.
struct TreeFile {
  std::string name;  ///< relative to the directory
  FileStatus status;
};

/// Local. All files below `directory`, by name. Throws Error{not_found | io}.
[[nodiscard]] std::vector<TreeFile> files_below(FileSystem& file_system, const std::string& directory);

/// Local. Relative names of all empty directories below `directory`. Throws Error{not_found | io}.
[[nodiscard]] std::vector<std::string> empty_directories_below(FileSystem& file_system, const std::string& directory);

/// Called before each step; returns true to stop.
using ShouldStop = std::function<bool()>;

/// Local. Removes `path` and, if it is a directory, everything below it; a missing name is not an error. Removes as
/// much as possible until `should_stop`, then throws the first failure: Error{io}. Returns false if `should_stop` ended
/// it early.
bool remove_tree(FileSystem& file_system, const std::string& path, const ShouldStop& should_stop = {});

/// Local. Makes `path` and its missing parents. Parents may be links to directories, by the user's choice; the caller
/// checks the last component. Throws Error{io | no_space}.
void make_directories(FileSystem& file_system, const std::string& path, std::uint32_t mode);

/// Pure. Whether every user may replace other users' files in this directory.
[[nodiscard]] bool is_writable_by_all(const FileStatus& status) noexcept;

/// Local. Makes the missing directories between `base`, which exists, and base + "/" + `name`. Throws Error{io} if
/// something other than a directory is in the way.
void make_parents(FileSystem& file_system, const std::string& base, std::string_view name, std::uint32_t mode);

}  // namespace kedge::fs
