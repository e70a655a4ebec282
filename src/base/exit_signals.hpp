// Signals that ask a job to end, where they would kill it otherwise. Which of them came is state of the whole process.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kedge {

/// Returns the number of a signal that may ask a job to end, given its name; nothing for other names. Pure.
[[nodiscard]] std::optional<int> parse_exit_signal(std::string_view name) noexcept;
/// Returns the name of a signal that may ask a job to end. Pure.
[[nodiscard]] std::string_view exit_signal_name(int signal) noexcept;

inline constexpr std::size_t kExitSignalCount = 6;

/// Keeps these signals from killing the process, for its own lifetime: a handler records that a signal came and calls
/// the handler that the program had installed before, if any. All objects of a process share one handler per signal;
/// the last one destroyed restores the earlier action, unless the program has installed another handler since. In a
/// forked child a signal does what it did before. Must not be created or destroyed in a signal handler.
class ExitSignals {
 public:
  /// Ignores names that parse_exit_signal() does not know.
  explicit ExitSignals(const std::vector<std::string>& names);
  ~ExitSignals();
  ExitSignals(const ExitSignals&) = delete;
  ExitSignals& operator=(const ExitSignals&) = delete;

  /// Returns a signal that came since this object was created, the lowest of several; 0 if none came. Callable from any
  /// thread.
  [[nodiscard]] int received_signal() const noexcept;
  /// Returns names of signals that cannot be watched, because too many handlers were installed over Kedge's and left
  /// there.
  [[nodiscard]] const std::vector<std::string>& unwatched_signals() const noexcept { return unwatched_signals_; }

 private:
  /// Counts of the watched signals when this was created.
  std::array<std::optional<std::uint32_t>, kExitSignalCount> initial_counts_;
  std::vector<std::string> unwatched_signals_;
};

}  // namespace kedge
