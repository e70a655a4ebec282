// How large writes reach stores that are not memory.
#pragma once

#include "engine/context.hpp"

namespace kedge::engine {

/// COLLECTIVE. By store.io; rank 0 measures in its store where that is to decide, all ranks do the same, and rank 0
/// says in a line what was chosen and why. Whatever cannot be had means the page cache, and is no error.
void choose_store_io(Context& context);

}  // namespace kedge::engine
