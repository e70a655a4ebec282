// How a persistent commit's directory is called and what lies where in it. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "kedge/types.hpp"

namespace kedge::persist {

/// Below the tag directory. Its rename to this name is the commit.
inline constexpr std::string_view kManifestFile = "checkpoint.h5";
/// Beside the tag directories: names the one that was published last.
inline constexpr std::string_view kLatestFile = "latest";
/// Below the tag directory: it is not to be removed by retention.
inline constexpr std::string_view kPinFile = "pinned";
inline constexpr std::string_view kDataDirectory = "data";
/// Below the tag directory: routed files as plain files, with persistent.plain_routed.
inline constexpr std::string_view kPlainDirectory = "files";
inline constexpr std::uint32_t kContainersPerDirectory = 1000;

/// A parsed directory name: `<tag>.<generation>-<first 8 hex digits of the commit id>`.
struct TagDirectory {
  std::string tag;
  std::uint64_t generation = 0;
  std::string id_digits;  ///< 8 of them
  bool operator==(const TagDirectory&) const = default;
};

[[nodiscard]] std::string directory_name(const CommitHead& commit);
/// Nothing for any name that directory_name would not write.
[[nodiscard]] std::optional<TagDirectory> parse_directory_name(std::string_view name);

/// "data/<r / 1000>", below the tag directory.
[[nodiscard]] std::string container_directory(LogicalRank logical_rank);
/// "files/<r / 1000>/rank-<r>": below it each file has its own name.
[[nodiscard]] std::string plain_directory(LogicalRank logical_rank);
/// Pure. The rank of such a directory by its last component; nothing for other names.
[[nodiscard]] std::optional<LogicalRank> rank_of_plain(std::string_view directory_name);
/// "data/<r / 1000>/rank-<r>.h5": the same in every tag directory, at most 32 bytes.
[[nodiscard]] std::string container_file(LogicalRank logical_rank);
/// The rank of a container by its file's name; nothing for other names.
[[nodiscard]] std::optional<LogicalRank> rank_of_container(std::string_view file_name);

}  // namespace kedge::persist
