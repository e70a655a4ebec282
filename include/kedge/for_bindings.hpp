// What interfaces to other languages need of an engine. Not part of kedge.hpp.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "kedge/engine.hpp"

namespace kedge {

/// For interfaces to other languages; C++ programs have no use for it.
struct ForBindings {
  /// Local, never throws. A region that could not even be passed to save or load: the commit or close that follows
  /// throws invalid_argument with the name and the reason, on all ranks.
  static Status refuse(Engine& engine, std::string_view name, std::string_view reason);
  /// Local. The bytes of a region in the checkpoint that this rank committed last, where they lie in the store. Empty
  /// if the store is not in memory, or there is no such region. Valid until the next collective call. Waits until a
  /// snapshot is sealed. If another process truncates the file meanwhile, they read as zeros from there on.
  [[nodiscard]] static std::span<const std::byte> committed(const Engine& engine, std::string_view name);
  /// Local. An error of the application, which C++ does not see, leads to the engine's destruction. `why`, if given, is
  /// told the other ranks, whose next call throws rank_failed with it where MPI carries it.
  static void leave_by_error(Engine& engine, std::string_view why = {}) noexcept;
};

}  // namespace kedge
