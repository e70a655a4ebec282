// Meaning of a word on the command line: a tag directory by its path, or a tag on the prefix.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "fs/file_system.hpp"
#include "persist/tags.hpp"

namespace CLI {
class App;
}  // namespace CLI

namespace kedge::tools {

/// Operand of the commands that read checkpoints.
inline constexpr const char* kCheckpointOperand = "TAG|DIRECTORY|FILE";

/// A directory below a prefix that has, or ought to have, a manifest.
struct TagLocation {
  std::string prefix;     ///< canonical
  std::string directory;  ///< name below it
  std::string shown;      ///< path for people, beginning as the user wrote it
  std::string run = {};   ///< whose it is, if another run's could have been meant
};

/// persistent.path of the configuration here and now. Throws Error{invalid_argument} if that is wrong.
[[nodiscard]] std::string configured_prefix();
/// The words for a prefix that does not exist, with what to do: if it `is_configured`, the user did not name it, and is
/// told where it came from.
[[nodiscard]] std::string no_such_prefix(bool is_configured);

/// The path's status, links followed as the user named it himself; nothing if there is no such name.
[[nodiscard]] std::optional<fs::FileStatus> status_of(fs::FileSystem& file_system, const std::string& path);

/// If `path` is a directory with a manifest or the name of a tag directory, or a manifest, or the file `latest` of a
/// prefix.
[[nodiscard]] std::optional<TagLocation> tag_directory_at(fs::FileSystem& file_system, const std::string& path);

/// Which checkpoint a user means.
struct TagQuery {
  std::string word;
  std::string prefix = {};  ///< empty: where the word leads, else the configured one
  std::string run = {};     ///< empty: of several that have the tag, the one that made it last
};

/// The newest of the tag `word` on the prefix, or the newest of all for "latest", or the tag directory of this name; of
/// the run. Throws Error{not_found} that says what there is, or what the prefix throws.
[[nodiscard]] TagLocation find_tag(fs::FileSystem& file_system, const TagQuery& meant);

/// The checkpoint that the user means by the word: on the prefix if one is given; else a path (tag_directory_at); else
/// a tag on the configured prefix, unless a file is called so. Nothing: it is some other path. Says whose it is where
/// that was chosen for the user. Throws as find_tag.
[[nodiscard]] std::optional<TagLocation> resolve_tag(fs::FileSystem& file_system, const TagQuery& meant);

/// The option --run of commands that take tags.
void add_run_option(CLI::App& parser, std::string& run);

/// Kind of a directory, by the names in it.
enum class DirectoryKind : std::uint8_t { store, prefix, tag, empty, foreign };
[[nodiscard]] DirectoryKind classify_directory(const std::vector<std::string>& names);

/// Appended to a refusal: the run's directory that somebody meant who named the node-local path. Empty if there is
/// none.
[[nodiscard]] std::string run_directory_hint(const std::vector<std::string>& names);

}  // namespace kedge::tools
