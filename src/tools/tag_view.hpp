// Describes a committed checkpoint as text and JSON, from its manifest and its containers' indexes.
#pragma once

#include <optional>

#include "fs/file_system.hpp"
#include "tools/outcome.hpp"
#include "tools/tag_location.hpp"

namespace kedge::tools {

struct TagViewOptions {
  bool json = false;
  bool containers = false;            ///< list each container
  bool blocks = false;                ///< list each block of the global arrays
  std::optional<std::uint32_t> rank;  ///< show only this rank's container
};

/// Prints the description and reports missing or damaged files. Throws what open_manifest throws, and invalid_argument
/// for a rank that the checkpoint does not have.
[[nodiscard]] Outcome show_tag(fs::FileSystem& file_system, const TagLocation& place, const TagViewOptions& options);

}  // namespace kedge::tools
