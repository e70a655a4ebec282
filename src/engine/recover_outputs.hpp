// Outputs that are not on the prefix yet, after a node was lost.
#pragma once

#include "engine/parts.hpp"

namespace kedge::engine {

/// COLLECTIVE, while nothing is under way and the stores were surveyed. Where a rank lacks its container of an output
/// that is to be flushed, it is moved or rebuilt, as that of a checkpoint that is opened. One that cannot be costs a
/// warning. Of outputs of one tag that is done for the newest. Throws only what ends the engine.
void recover_outputs(const Parts& parts);

}  // namespace kedge::engine
