// Exit statuses by which a script knows whether to start the program again.
#pragma once

#include "kedge/error.hpp"

namespace kedge {

/// Another attempt may succeed: a rank or a node is gone, a filesystem is full or unreachable, a store is in use.
/// EX_TEMPFAIL of sysexits.h.
inline constexpr int kExitTryAgain = 75;
/// Another attempt fails the same way until somebody changes something: an option, a call, which checkpoints there are.
/// EX_CONFIG of sysexits.h.
inline constexpr int kExitPermanent = 78;

/// Local. Which of the two fits an Error of this code. mpi_main returns it if its body throws one.
[[nodiscard]] int exit_status(ErrorCode code) noexcept;

}  // namespace kedge
