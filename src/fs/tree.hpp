// Directories with all that lies below them. Links are never followed.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "fs/file_system.hpp"

namespace kedge::fs {

/// A file (not a directory) somewhere below a directory.
struct TreeFile {
  std::string name;  ///< relative to that directory
  FileStatus status;
};

/// Local. Everything below `directory` but directories, by name. Throws Error{not_found | io}.
[[nodiscard]] std::vector<TreeFile> files_below(FileSystem& file_system, const std::string& directory);

/// Local. The directories somewhere below `directory` that have nothing in them, by name relative to it. Throws
/// Error{not_found | io}.
[[nodiscard]] std::vector<std::string> empty_directories_below(FileSystem& file_system, const std::string& directory);

/// Asked before each of several steps: whether those that were done are enough for now.
using ShouldStop = std::function<bool()>;

/// Local. Removes `path` and, if it is a directory, all below it; a name that does not exist is fine. What can be
/// removed is removed, until there is `enough`; then the first failure is thrown: Error{io}. False if something is left
/// for which there was no time.
bool remove_tree(FileSystem& file_system, const std::string& path, const ShouldStop& enough = {});

/// Local. Makes `path` and its missing parents. A parent may be a link to a directory: the user arranged it so. The
/// caller checks what the last component is. Throws Error{io | no_space}.
void make_directories(FileSystem& file_system, const std::string& path, std::uint32_t mode);

/// Pure. Whether this is a directory in which every user may replace what belongs to others.
[[nodiscard]] bool is_open_to_all(const FileStatus& status) noexcept;

/// Local. Makes the directories on the way from `base`, which exists, to base + "/" + `name`. Throws Error{io} if
/// something else is in the place of one.
void make_parents(FileSystem& file_system, const std::string& base, std::string_view name, std::uint32_t mode);

}  // namespace kedge::fs
