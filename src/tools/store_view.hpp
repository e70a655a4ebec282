// Describes what a node's store has of its newest checkpoint.
#pragma once

#include <string>

#include "fs/file_system.hpp"
#include "tools/outcome.hpp"
#include "tools/tag_view.hpp"

namespace kedge::tools {

/// Prints the description, from the containers in the canonical `directory`. Throws Error{not_found} if none is sealed,
/// invalid_argument for a rank that is not here.
[[nodiscard]] Outcome show_store(fs::FileSystem& file_system, const std::string& directory, const std::string& shown,
                                 const TagViewOptions& options);

}  // namespace kedge::tools
