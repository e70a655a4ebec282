#include "kedge/exit_status.hpp"

namespace kedge {

int exit_status(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::invalid_argument:
    case ErrorCode::bad_state:
    case ErrorCode::not_found:
    case ErrorCode::mismatch:
    case ErrorCode::unrecoverable: return kExitPermanent;
    case ErrorCode::no_space:
    case ErrorCode::io:
    case ErrorCode::corrupt:  // the next start skips it
    case ErrorCode::timeout:
    case ErrorCode::busy:
    case ErrorCode::rank_failed:
    case ErrorCode::device_failed: return kExitTryAgain;
  }
  return kExitPermanent;
}

}  // namespace kedge
