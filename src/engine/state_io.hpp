// A State's variables to the writer and from the reader.
#pragma once

#include <cstdint>
#include <optional>

#include "engine/reader.hpp"
#include "engine/writer.hpp"
#include "kedge/state.hpp"

namespace kedge::engine {

/// Expected size of a state.
struct StateSize {
  std::uint64_t bytes = 0;
  std::optional<Failure> failure;  ///< why a variable could not be asked, the first such one
};

/// Local. Size of the state's variables now.
[[nodiscard]] StateSize size_of(const State& state);

/// Local, between create and commit. Failures are remembered, for commit to throw on all ranks.
void save(Writer& writer, const State& state);

/// Between open and close. Local if as many ranks saved the checkpoint: ranks that call these and load instead do the
/// same; else COLLECTIVE. Resizes what can be resized to
/// what was saved. What fails is remembered, for close to throw on all ranks; which regions no item loads, close logs.
void load(Reader& reader, const State& state);

/// COLLECTIVE, as load, of a checkpoint that another number of ranks saved: each variable gets what its block says now.
void load_of_other_ranks(Reader& reader, const State& state);

/// Local. Why a restart ends, if variables hold what was loaded before of a checkpoint that has this `damage`.
[[nodiscard]] Failure failure_after_partial_load(Failure why, const Failure& damage);

}  // namespace kedge::engine
