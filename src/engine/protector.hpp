// The engine's part in redundancy: which scheme, when to protect, and what becomes of a protection that fails.
#pragma once

#include <optional>

#include "engine/context.hpp"
#include "redundancy/plan_pieces.hpp"

namespace kedge::engine {

/// Local. How exchanges cut what they send.
[[nodiscard]] redundancy::PieceSettings piece_settings(const Options& options);

/// COLLECTIVE, once the topology is known. Settles the scheme and finds the members of this rank's set. Throws
/// invalid_argument if the scheme was asked for and the layout of ranks over failure domains does not permit it.
void join_set(Context& context);

/// COLLECTIVE. Protects a commit of this engine, sealed on all ranks, and raises its level. The failure, the same on
/// every rank; the commit is then as it was. Throws Error{timeout} only.
[[nodiscard]] std::optional<Failure> protect(Context& context, const commits::Entry& commit);

/// COLLECTIVE, after recovery. Sees to it that the opened commit is as well protected as a fresh one. Until it is, the
/// copies stay that a relocation left where they were. A failure is logged: the commit is open all the same.
void restore_protection(Context& context, const commits::Entry& opened);

}  // namespace kedge::engine
