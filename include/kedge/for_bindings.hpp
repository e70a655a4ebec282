// Calls for interfaces to other languages. Not part of kedge.hpp.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

#include "kedge/engine.hpp"

namespace kedge {

/// For interfaces to other languages; C++ programs do not need it.
struct ForBindings {
  /// Local, never throws. Reports a region that could not be passed to save or load: the next commit or close throws
  /// invalid_argument with the name and the reason, on all ranks.
  static Status refuse(Engine& engine, std::string_view name, std::string_view reason);
  /// COLLECTIVE. Engine::load_all; `refused`, on any rank, is why its wants could not be passed on: thrown on all
  /// ranks.
  static void load_all(Engine& engine, std::span<const Want> wants, std::optional<Failure> refused);
  /// Local. The bytes of a region in this rank's last committed checkpoint, in the store's memory. Empty if the store
  /// is not in memory or there is no such region. Valid until the next collective call. Waits until a snapshot is
  /// sealed. If another process truncates the file, the bytes from there on read as zeros.
  [[nodiscard]] static std::span<const std::byte> committed(const Engine& engine, std::string_view name);
  /// Local. Tells the engine, before it is destroyed, that the cause is an error of the application that C++ cannot
  /// see. The other ranks' next call throws rank_failed with `why`, if the message layer can tell them.
  static void leave_by_error(Engine& engine, std::string_view why = {}) noexcept;
};

}  // namespace kedge
