// What tests throw through the code to end a simulated process: production code never throws or catches it.
#pragma once

namespace kedge {

struct SimulatedDeath {};

}  // namespace kedge
