// What can be had again: the look at the stores and the prefix, and the agreement about it.
#pragma once

#include "engine/context.hpp"
#include "recovery/agreement.hpp"

namespace kedge::engine {

/// COLLECTIVE. Looks at all files of this run anew and at the prefix, and agrees on what can be had; sets the history.
/// `selection` is what is to be opened; null: nothing is, and a prefix that cannot be reached does not matter.
///
/// With Verify::all what counts was read whole: every file of the commit that the selection chooses, and of those that
/// stay beside it. What is damaged counts as missing, as if everything had been read before: the choice is made again,
/// until nothing is found. Files of other commits are overwritten or removed next; their headers are enough.
[[nodiscard]] recovery::Agreement take_stock(Context& context, Verify verify, const Selection* selection);

}  // namespace kedge::engine
