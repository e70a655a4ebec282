// The death of a process, as tests simulate it.
#pragma once

namespace kedge::testing {

/// Thrown through the code in place of a kill: by communicators of an InProcessWorld, and by tests for deaths of their
/// own. Not derived from std::exception on purpose: code that survives errors must not survive this. Code under test
/// must therefore not catch (...), or must throw it on. Unlike a kill it runs destructors.
struct SimulatedDeath {};

}  // namespace kedge::testing
