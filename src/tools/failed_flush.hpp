// A flush that failed, as kedge ls tells it.
#pragma once

#include <string>

#include "base/json_forward.hpp"
#include "store/failed_flush.hpp"

namespace kedge::tools {

/// "step-120: flush failed 2 min 3 s ago: no_space: ...", and the end of the line.
[[nodiscard]] std::string failed_flush_text(const store::FailedFlush& failed);
[[nodiscard]] Json failed_flush_json(const store::FailedFlush& failed);

}  // namespace kedge::tools
