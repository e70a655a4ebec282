// Failures for C callers: a code as the result, the rest per thread until they ask.
#pragma once

#include <exception>
#include <string>
#include <utility>

#include "base/attempt.hpp"
#include "kedge/error.hpp"
#include "kedge/kedge.h"

namespace kedge::bindings {

/// Local. Makes it this thread's last failure and gives its code. Needs no memory.
kedge_error remember(const Failure& failure) noexcept;
kedge_error remember(const std::exception& error) noexcept;

/// Local. A call was given what it cannot use; `message` says what.
kedge_error refuse(std::string message) noexcept;

/// Refuses an argument inside of guarded().
[[noreturn]] inline void throw_argument(std::string message) {
  throw Error(ErrorCode::invalid_argument, std::move(message));
}

/// Inside of guarded(): what the engine made of a refusal.
[[noreturn]] inline void throw_refused(const Status& status) { throw Error(status.failure()); }

/// Local. The result of a call that has no engine to work with.
kedge_error null_engine_error(const char* call) noexcept;

/// Runs the body of a call: no exception crosses into C. Only std::exception is caught, see attempt().
template <class Body>
kedge_error guarded(Body&& body) {
  try {
    std::forward<Body>(body)();
    return KEDGE_OK;
  } catch (const std::exception& error) {
    return remember(error);
  }
}

/// A collective call whose arguments cannot be used on this rank. To return would leave the other ranks waiting:
/// `call` takes part with an argument that the engine refuses on all of them; here the true reason is told.
template <class Call>
kedge_error refuse_on_all_ranks(const Failure& reason, Call&& call) {
  const kedge_error code = guarded(std::forward<Call>(call));
  if (code != KEDGE_OK && code != KEDGE_INVALID_ARGUMENT) return code;  // e.g. nothing fits an engine that is dead
  return refuse(reason.message);
}

}  // namespace kedge::bindings
