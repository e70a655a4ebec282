// What a program ends with, so that a script knows whether to start it again.
#pragma once

#include "kedge/error.hpp"

namespace kedge {

/// Another attempt may succeed: a rank or a node is gone, a filesystem is full or unreachable, a store is in use.
/// EX_TEMPFAIL of sysexits.h.
inline constexpr int kExitTryAgain = 75;
/// Another attempt fails alike until somebody changes something: an option, a call, which checkpoints there are.
/// EX_CONFIG of sysexits.h.
inline constexpr int kExitPermanent = 78;

/// Local. One of these two; mpi_main ends a program so, of which an Error was thrown.
[[nodiscard]] int exit_status(ErrorCode code) noexcept;

}  // namespace kedge
