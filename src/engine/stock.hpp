// What can be had again: the look at the stores and the prefix, and the agreement about it.
#pragma once

#include <cstdint>

#include "engine/context.hpp"
#include "recovery/agreement.hpp"

namespace kedge::engine {

/// How much of the files is read before the agreement stands.
enum class Look : std::uint8_t {
  headers,          ///< no more than says what they are
  what_is_used,     ///< whole: of what counts, all that the recovery will not read and check itself
  all_that_counts,  ///< whole: all of what counts
};

/// COLLECTIVE. Looks at all files of this run anew and at the prefix, and agrees on what can be had; sets the history.
/// `selection` is what is to be opened; null: nothing is, and a prefix that cannot be reached does not matter.
///
/// What counts is every file of the commit that the selection chooses, and of those that stay beside it. What is
/// damaged counts as missing, as if everything had been read before: the choice is made again, until nothing is found.
/// Files of other commits are overwritten or removed next; their headers are enough. What a set is rebuilt from is read
/// and checked by the rebuild; if that finds damage, look again at all that counts.
[[nodiscard]] recovery::Agreement take_stock(Context& context, Look look, const Selection* selection);

}  // namespace kedge::engine
