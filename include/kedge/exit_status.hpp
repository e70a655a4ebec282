// Exit statuses that tell a script whether to start the program again.
#pragma once

#include "kedge/error.hpp"

namespace kedge {

/// Another attempt may succeed: a rank or node is gone, a filesystem is full or unreachable, a store is in use.
/// EX_TEMPFAIL of sysexits.h.
inline constexpr int kExitTryAgain = 75;
/// Another attempt fails the same way until somebody changes an option, a call, or the existing checkpoints. EX_CONFIG
/// of sysexits.h.
inline constexpr int kExitPermanent = 78;

/// Local. The exit status for an Error of this code, as mpi_main returns it.
[[nodiscard]] int exit_status(ErrorCode code) noexcept;

}  // namespace kedge
