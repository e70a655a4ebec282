// What a word on the command line means: a tag folder by its path, or a tag on the prefix.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "fs/file_system.hpp"
#include "persist/tags.hpp"

namespace kedge::tools {

/// A folder below a prefix that has, or ought to have, a master.
struct TagPlace {
  std::string prefix;  ///< canonical
  std::string folder;  ///< name below it
  std::string shown;   ///< path for people, beginning as the user wrote it
};

/// persistent.path of the configuration here and now. Throws Error{invalid_argument} if that is wrong.
[[nodiscard]] std::string configured_prefix();

/// The path's status, links followed as the user named it himself; nothing if there is no such name.
[[nodiscard]] std::optional<fs::FileStatus> status_of(fs::FileSystem& file_system, const std::string& path);

/// If `path` is a folder with a master or the name of a tag folder, or a master, or the file `latest` of a prefix.
[[nodiscard]] std::optional<TagPlace> tag_folder_at(fs::FileSystem& file_system, const std::string& path);

/// The newest of the tag `word` on the prefix, or the newest of all for "latest", or the tag folder of this name.
/// Throws Error{not_found} that says what there is, or what the prefix throws.
[[nodiscard]] TagPlace find_tag(fs::FileSystem& file_system, const std::string& prefix, const std::string& word);

/// The checkpoint that the user means by `word`: on `prefix` if one is given; else a path (tag_folder_at); else a tag
/// on the configured prefix, unless a file is called so. Nothing: it is some other path. Throws as find_tag.
[[nodiscard]] std::optional<TagPlace> tag_meant(fs::FileSystem& file_system, const std::string& word,
                                                const std::string& prefix);

/// What `names`, those of one folder, make of it.
enum class FolderKind : std::uint8_t { store, prefix, tag, empty, foreign };
[[nodiscard]] FolderKind classify_folder(const std::vector<std::string>& names);

/// Appended to a refusal: the run's folder that somebody meant who named the node-local path. Empty if there is none.
[[nodiscard]] std::string run_folder_hint(const std::vector<std::string>& names);

}  // namespace kedge::tools
