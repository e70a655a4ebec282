// An error that no system call caused.
#pragma once

#include <string>
#include <utility>

#include "kedge/error.hpp"

namespace kedge {

/// Throws an Error about `path`, if one is given; without rank and errno.
[[noreturn]] inline void refuse(ErrorCode code, std::string message, std::string path = {}) {
  throw Error(Failure{code, std::move(message), -1, std::move(path), 0});
}

}  // namespace kedge
