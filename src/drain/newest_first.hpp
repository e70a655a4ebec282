// Finds the newest checkpoint that any number of ranks can recover.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "drain/placement.hpp"
#include "kedge/error.hpp"

namespace kedge::drain {

/// What a start of a pass found out.
struct Tried {
  std::uint64_t generation = 0;  ///< of the newest checkpoint that it can recover; 0 if there is none
  bool is_flushed = false;       ///< by this start
  bool was_there = false;        ///< on the prefix before
};

/// Starts a pass, which flushes its newest checkpoint if that has this generation or a newer one. Throws Error.
using TryPass = std::function<Tried(std::size_t pass, std::uint64_t at_least)>;

struct Search {
  std::optional<std::size_t> found;  ///< the pass whose checkpoint is on the prefix now
  std::optional<Failure> failure;  ///< why none is; without both, the newest is on the prefix, of ranks without a pass
};

/// COLLECTIVE if `try_pass` is. Tries passes until one has flushed the newest checkpoint. Containers that were seen
/// only say that a pass has nothing newer than the newest of them; only a start finds out what it can recover. One
/// whose checkpoint turns out to be older than what another pass may have flushes it only if all those fail. An
/// unrecoverable pass is no obstacle to the others; any other failure ends the search. Throws only what ends
/// communication.
[[nodiscard]] Search flush_newest_of(const PrefixState& prefix, std::span<const FlushPass> passes,
                                     const TryPass& try_pass);

}  // namespace kedge::drain
