// Turns what a local step throws into a Failure, so that it can be voted on instead of leaving a rank alone; throws
// errors that no system call caused.
#pragma once

#include <exception>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "kedge/error.hpp"

namespace kedge {

/// Returns the failure that an exception stands for.
[[nodiscard]] inline Failure to_failure(const std::exception& error) {
  if (const auto* known = dynamic_cast<const Error*>(&error)) return known->failure();
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) {
    return Failure{ErrorCode::no_space, "out of memory; give the job more memory or save less per rank"};
  }
  return Failure{ErrorCode::io, std::string("unexpected: ") + error.what()};
}

/// Runs a step that must not communicate; returns its failure, or nothing if it succeeded. Only std::exception is
/// caught: tests simulate the death of a process by a type that is none.
template <class Step>
[[nodiscard]] std::optional<Failure> attempt(Step&& step) {
  try {
    std::forward<Step>(step)();
    return std::nullopt;
  } catch (const std::exception& error) {
    return to_failure(error);
  }
}

/// Throws the failure again, with advice on what to do about the file if its code is io. For other codes, such as a
/// lack of memory or descriptors, the advice would be wrong.
[[noreturn]] inline void rethrow_with_advice(Failure failure, std::string_view advice) {
  if (failure.code == ErrorCode::io) failure.message += advice;
  throw Error(std::move(failure));
}

/// Throws an Error without rank and errno, about `path` if one is given.
[[noreturn]] inline void refuse(ErrorCode code, std::string message, std::string path = {}) {
  throw Error(Failure{code, std::move(message), -1, std::move(path), 0});
}

}  // namespace kedge
