// Whether a prefix was moved or copied, by what is seen where a run's records lay before.
#pragma once

#include <string>

#include "fs/file_system.hpp"
#include "kedge/types.hpp"

namespace kedge::start {

/// State of the directory where a run's records lay at its last start.
enum class OriginalPrefix { gone, there, denied };

/// Local. If the run's records still lie in `directory`, the prefix that is used now is a copy of that one. Damaged
/// ones count as the original's. Throws Error{io} if that cannot be read.
[[nodiscard]] OriginalPrefix find_original_prefix(fs::FileSystem& file_system, const std::string& directory,
                                                  const Id128& run_id);

}  // namespace kedge::start
