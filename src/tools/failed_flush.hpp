// Describes a failed flush for kedge ls.
#pragma once

#include <string>

#include "base/json_forward.hpp"
#include "store/failed_flush.hpp"

namespace kedge::tools {

/// A line such as "step-120: flush failed 2 min 3 s ago: no_space: ...".
[[nodiscard]] std::string failed_flush_text(const store::FailedFlush& failed);
[[nodiscard]] Json failed_flush_json(const store::FailedFlush& failed);

}  // namespace kedge::tools
