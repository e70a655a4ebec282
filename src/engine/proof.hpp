// Proofs by nonce files, at an engine's start, that storage is shared where it must be and nowhere else.
#pragma once

#include "engine/context.hpp"

namespace kedge::engine {

/// COLLECTIVE. The prefix is one filesystem on all ranks: rank 0 writes a random number there and each rank reads it.
/// Returns the number, the same on every rank. Throws Error{invalid_argument} naming a rank that sees another
/// directory. The file stays until the catalog's remove_nonces().
[[nodiscard]] Id128 prove_prefix(Context& context);

/// COLLECTIVE, with the stores' locks held. No two failure domains share a store: the lowest rank of each node, and
/// whoever has another store than it, leaves a file with `nonce` in its store and looks whose else are there. Throws
/// Error{invalid_argument} naming two ranks and the directory. Also removes what starts that crashed here left.
void prove_stores(Context& context, const Id128& nonce);

}  // namespace kedge::engine
