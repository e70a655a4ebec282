// All of Kedge's C++ interface except the MPI communicator (kedge/mpi.hpp).
#pragma once

#if __cplusplus < 202002L
#error \
    "Kedge's headers are C++20: compile with -std=c++20 (CMake: kedge::kedge and kedge::core ask for it, but not in CUDA files)"
#endif

#include "kedge/attributes.hpp"    // IWYU pragma: export
#include "kedge/communicator.hpp"  // IWYU pragma: export
#include "kedge/counters.hpp"      // IWYU pragma: export
#include "kedge/elements.hpp"      // IWYU pragma: export
#include "kedge/engine.hpp"        // IWYU pragma: export
#include "kedge/error.hpp"         // IWYU pragma: export
#include "kedge/exit_status.hpp"   // IWYU pragma: export
#include "kedge/options.hpp"       // IWYU pragma: export
#include "kedge/selection.hpp"     // IWYU pragma: export
#include "kedge/state.hpp"         // IWYU pragma: export
#include "kedge/transport.hpp"     // IWYU pragma: export
#include "kedge/types.hpp"         // IWYU pragma: export
#include "kedge/want.hpp"          // IWYU pragma: export
