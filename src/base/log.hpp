// The engine's log: to the application's sink, else to standard error.
#pragma once

#include <memory>
#include <string_view>

#include "kedge/options.hpp"

namespace kedge {

/// Writes lines to the log. Cheap to copy, and usable from several threads. Never throws: a line that cannot be written
/// is lost.
class Log {
 public:
  explicit Log(const Options::Log& options);

  void debug(std::string_view text) const noexcept { write(LogLevel::debug, text); }
  void info(std::string_view text) const noexcept { write(LogLevel::info, text); }
  void warning(std::string_view text) const noexcept { write(LogLevel::warning, text); }
  void error(std::string_view text) const noexcept { write(LogLevel::error, text); }
  void write(LogLevel level, std::string_view text) const noexcept;

  /// Whether a line of this level would be written, so that callers need not make long ones otherwise.
  [[nodiscard]] bool is_enabled(LogLevel level) const noexcept;

 private:
  struct Writer;
  std::shared_ptr<Writer> writer_;
};

}  // namespace kedge
