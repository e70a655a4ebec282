// Finds the checkpoint that a word on the command line names: a tag directory by its path, or a tag on the prefix.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "fs/file_system.hpp"

namespace CLI {
class App;
}  // namespace CLI

namespace kedge::tools {

inline constexpr const char* kCheckpointOperand = "TAG|DIRECTORY|FILE";

/// A directory below a prefix that has, or should have, a manifest.
struct TagLocation {
  std::string prefix;     ///< canonical
  std::string directory;  ///< relative to the prefix
  std::string shown;      ///< path in the user's spelling
  std::string run = {};   ///< set if other runs have the tag
};

/// persistent.path from the current configuration. Throws Error{invalid_argument} if the configuration is invalid.
[[nodiscard]] std::string configured_prefix();
/// Message for a prefix that does not exist, with the remedy. If it `is_configured`, the user did not name it and is
/// told where it came from.
[[nodiscard]] std::string missing_prefix_message(bool is_configured);

/// The path's status; follows links, since the user named them. Nothing if there is no such name.
[[nodiscard]] std::optional<fs::FileStatus> status_of(fs::FileSystem& file_system, const std::string& path);

/// The tag directory if `path` is one, a manifest, or the file `latest` of a prefix.
[[nodiscard]] std::optional<TagLocation> tag_directory_at(fs::FileSystem& file_system, const std::string& path);

/// The user's words for a checkpoint.
struct TagQuery {
  std::string word;
  std::string prefix = {};  ///< empty: the one that the word leads to, else the configured one
  std::string run = {};     ///< empty: of several runs with the tag, the one that made it last
};

/// The newest commit of the tag `word` on the prefix, the newest checkpoint for "latest", or the tag directory of this
/// name, of the requested run. Throws Error{not_found} with what exists, or the prefix's error.
[[nodiscard]] TagLocation find_tag(fs::FileSystem& file_system, const TagQuery& meant);

/// Finds the user's checkpoint: on the prefix, if given; else a path (tag_directory_at); else a tag on the configured
/// prefix, unless a file has this name. Returns nothing for other paths. Prints the run if it was selected for the
/// user. Throws as find_tag.
[[nodiscard]] std::optional<TagLocation> resolve_tag(fs::FileSystem& file_system, const TagQuery& meant);

/// Adds the options --prefix and --run of commands that take tags.
void add_tag_options(CLI::App& parser, std::string& prefix, std::string& run);

/// Kind of a directory, judging by the names in it.
enum class DirectoryKind : std::uint8_t { store, prefix, tag, empty, foreign };
[[nodiscard]] DirectoryKind classify_directory(const std::vector<std::string>& names);

/// Appended to error messages: the run's directory, if the user named the directory above it. Empty if there is none.
[[nodiscard]] std::string run_directory_hint(const std::vector<std::string>& names);

}  // namespace kedge::tools
