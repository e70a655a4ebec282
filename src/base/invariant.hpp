// Assertions that stay on: cheap checks of what the code itself promises.
#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>

namespace kedge {

/// A promise of Kedge's own code does not hold. It is not an Error: no caller caused it, other ranks do not know of it,
/// and the engine that meets it takes no further calls.
class BrokenInvariant : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

[[noreturn]] inline void fail_invariant(std::string_view what, std::string_view path, int line) {
  const std::size_t slash = path.find_last_of('/');
  throw BrokenInvariant("internal error at " +
                        std::string(path.substr(slash == std::string_view::npos ? 0 : slash + 1)) + ":" +
                        std::to_string(line) + ": expected that " + std::string(what) + "; please report this");
}

/// Throws BrokenInvariant with the promise `what`, unless it holds. (Not by std::source_location, which Clang before 16
/// lacks.)
inline void invariant(bool holds, std::string_view what, const char* path = __builtin_FILE(),
                      int line = __builtin_LINE()) {
  if (!holds) fail_invariant(what, path, line);
}

}  // namespace kedge
