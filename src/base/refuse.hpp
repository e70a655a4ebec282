// An error about a file or directory that no system call failed on.
#pragma once

#include <string>
#include <utility>

#include "kedge/error.hpp"

namespace kedge {

/// Throws Error for `path`, with no rank and no errno.
[[noreturn]] inline void refuse(ErrorCode code, std::string message, std::string path = {}) {
  throw Error(Failure{code, std::move(message), -1, std::move(path), 0});
}

}  // namespace kedge
