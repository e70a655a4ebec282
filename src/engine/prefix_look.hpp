// What the prefix has of this run's commits: rank 0 looks, all ranks know.
#pragma once

#include <string>

#include "engine/context.hpp"
#include "recovery/agreement.hpp"

namespace kedge::engine {

/// COLLECTIVE. Marks the candidates that are on the prefix too and adds those that are only there, as far as the
/// selection can come to them: newest first, down to the first that can be opened. Manifests are read and checked here,
/// containers when they are fetched. Raises the context's highest generation and whether commits exist. Throws
/// Error{io} if the prefix cannot be reached; without a selection (null) that is only logged.
void look_at_prefix(Context& context, recovery::Survey& survey, const Selection* selection);

}  // namespace kedge::engine
