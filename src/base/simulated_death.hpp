// The death of a process, as tests simulate it.
#pragma once

namespace kedge {

/// Thrown through the code by the fault-injecting communicator and file system of tests in place of a kill.
/// Not derived from std::exception on purpose: code that survives errors must not survive this.
struct SimulatedDeath {};

}  // namespace kedge
