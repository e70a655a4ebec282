// Names of a persistent commit's directory and of the files in it. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "kedge/types.hpp"

namespace kedge::persist {

/// In the tag directory. Its rename to this name is the commit.
inline constexpr std::string_view kManifestFile = "checkpoint.h5";
/// Beside the tag directories: names the one that was published last.
inline constexpr std::string_view kLatestFile = "latest";
/// In the tag directory: retention must not remove it.
inline constexpr std::string_view kPinFile = "pinned";
inline constexpr std::string_view kDataDirectory = "data";
/// In the tag directory: routed files as plain files, with persistent.plain_routed.
inline constexpr std::string_view kPlainDirectory = "files";
inline constexpr std::uint32_t kContainersPerDirectory = 1000;

/// A parsed directory name: `<tag>.<generation>-<first 8 hex digits of the commit id>`.
struct TagDirectory {
  std::string tag;
  std::uint64_t generation = 0;
  std::string id_digits;  ///< 8 digits
  bool operator==(const TagDirectory&) const = default;
};

[[nodiscard]] std::string tag_directory_name(const CommitHead& commit);
/// Parses a name; returns nothing for names that tag_directory_name() would not return.
[[nodiscard]] std::optional<TagDirectory> parse_tag_directory_name(std::string_view name);

/// Returns "data/<r / 1000>", relative to the tag directory.
[[nodiscard]] std::string container_directory(LogicalRank logical_rank);
/// "files/<r / 1000>/rank-<r>": below it each file has its own name.
[[nodiscard]] std::string plain_directory(LogicalRank logical_rank);
/// Returns the rank of such a directory by its last component; nothing for other names.
[[nodiscard]] std::optional<LogicalRank> rank_of_plain_directory(std::string_view directory_name);
/// Returns "data/<r / 1000>/rank-<r>.h5", relative to the tag directory; at most 32 bytes.
[[nodiscard]] std::string container_file(LogicalRank logical_rank);
/// Returns the rank of a container by its file's name; nothing for other names.
[[nodiscard]] std::optional<LogicalRank> rank_of_container(std::string_view file_name);

}  // namespace kedge::persist
