// How a persistent commit's folder is called and what lies where in it. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "kedge/engine.hpp"
#include "kedge/types.hpp"

namespace kedge::persist {

/// Below the tag folder. Its rename to this name is the commit.
inline constexpr std::string_view kMasterFile = "checkpoint.h5";
/// Below the tag folder: it is not to be removed by retention.
inline constexpr std::string_view kPinFile = "pinned";
inline constexpr std::string_view kDataFolder = "data";
inline constexpr std::uint32_t kContainersPerFolder = 1000;

/// What a folder's name says: `<tag>.<generation>-<first 8 hex digits of the commit id>`.
struct TagFolder {
  std::string tag;
  std::uint64_t generation = 0;
  std::string id_digits;  ///< 8 of them
  bool operator==(const TagFolder&) const = default;
};

[[nodiscard]] std::string folder_name(std::string_view tag, std::uint64_t generation, const Id128& commit_id);
/// Nothing for any name that folder_name would not write.
[[nodiscard]] std::optional<TagFolder> parse_folder_name(std::string_view name);

/// "data/<r / 1000>", below the tag folder.
[[nodiscard]] std::string container_folder(LogicalRank logical_rank);
/// "data/<r / 1000>/rank-<r>.h5": the same in every tag folder, at most 32 bytes.
[[nodiscard]] std::string container_file(LogicalRank logical_rank);

}  // namespace kedge::persist
