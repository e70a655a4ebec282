#include <system_error>

#include "base/text.hpp"
#include "kedge/error.hpp"
#include "kedge/exit_status.hpp"

namespace kedge {

std::string_view to_string(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::invalid_argument: return "invalid_argument";
    case ErrorCode::bad_state: return "bad_state";
    case ErrorCode::not_found: return "not_found";
    case ErrorCode::mismatch: return "mismatch";
    case ErrorCode::no_space: return "no_space";
    case ErrorCode::io: return "io";
    case ErrorCode::corrupt: return "corrupt";
    case ErrorCode::unrecoverable: return "unrecoverable";
    case ErrorCode::timeout: return "timeout";
    case ErrorCode::busy: return "busy";
    case ErrorCode::rank_failed: return "rank_failed";
    case ErrorCode::device_failed: return "device_failed";
  }
  return "unknown";
}

std::string to_string(const Failure& failure) {
  std::string text(to_string(failure.code));
  if (failure.rank >= 0) text += " on rank " + std::to_string(failure.rank);
  text += ": " + failure.message;
  if (!failure.path.empty() || failure.system_errno != 0) {
    text += " (" + failure.path;
    if (failure.system_errno != 0) {
      if (!failure.path.empty()) text += ": ";
      text += std::generic_category().message(failure.system_errno);
    }
    text += ")";
  }
  // A program's names and paths are in it: a NUL would end what() early.
  return printable_lines(text);
}

Error::Error(Failure failure) : std::runtime_error(to_string(failure)), failure_(std::move(failure)) {}

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
