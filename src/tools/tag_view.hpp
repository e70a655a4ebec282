// A committed checkpoint in words and in JSON: its manifest, and what the indexes of its containers tell.
#pragma once

#include <optional>
#include <string>

#include "fs/file_system.hpp"
#include "tools/outcome.hpp"
#include "tools/tag_location.hpp"

namespace kedge::tools {

struct TagViewOptions {
  bool json = false;
  bool containers = false;            ///< name each of them
  std::optional<std::uint32_t> rank;  ///< this rank's container alone
};

/// Prints it, and complains of what is missing or damaged. Throws what open_manifest throws, and invalid_argument for a
/// rank that the checkpoint does not have.
[[nodiscard]] Outcome show_tag(fs::FileSystem& file_system, const TagLocation& place, const TagViewOptions& options);

}  // namespace kedge::tools
