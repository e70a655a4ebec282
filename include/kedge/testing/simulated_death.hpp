// The death of a process, as tests simulate it.
#pragma once

namespace kedge::testing {

/// Thrown in place of a kill, by communicators of an InProcessWorld and by tests. Not a std::exception, because code
/// that survives errors must not survive this: code under test must not catch (...), or must rethrow. Unlike a kill it
/// runs destructors.
struct SimulatedDeath {};

}  // namespace kedge::testing
