// Failures in the C API: calls return the code; each thread keeps the details of its last failure.
#pragma once

#include <exception>
#include <string>
#include <utility>

#include "base/attempt.hpp"
#include "kedge/error.hpp"
#include "kedge/kedge.h"

namespace kedge::bindings {

/// Local. Makes it this thread's last failure and returns its code. Needs no memory.
kedge_error remember(const Failure& failure) noexcept;
kedge_error remember(const std::exception& error) noexcept;

/// Local. Refuses a call's arguments; `message` gives the reason.
kedge_error refuse(std::string message) noexcept;

/// Refuses an argument within run_and_catch().
[[noreturn]] inline void throw_argument(std::string message) {
  throw Error(ErrorCode::invalid_argument, std::move(message));
}

/// Within run_and_catch(): throws the failure that the engine returned for a refusal.
[[noreturn]] inline void throw_refused(const Status& status) { throw Error(status.failure()); }

/// Local. Result of a call without an engine.
kedge_error null_engine_error(const char* call) noexcept;

/// Runs a call's body and keeps exceptions out of C. Catches only std::exception, see attempt().
template <class Body>
kedge_error run_and_catch(Body&& body) {
  try {
    std::forward<Body>(body)();
    return KEDGE_OK;
  } catch (const std::exception& error) {
    return remember(error);
  }
}

/// For a collective call with invalid arguments on this rank, where returning would leave the other ranks waiting:
/// `call` takes part with an argument that the engine refuses on all ranks; this rank then reports the real reason.
template <class Call>
kedge_error refuse_on_all_ranks(const Failure& reason, Call&& call) {
  const kedge_error code = run_and_catch(std::forward<Call>(call));
  if (code != KEDGE_OK && code != KEDGE_INVALID_ARGUMENT) return code;  // e.g. the engine is dead
  return refuse(reason.message);
}

}  // namespace kedge::bindings
