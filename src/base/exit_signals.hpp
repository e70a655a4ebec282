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

/// Pure. The number of a signal that may ask a job to end, by its name; nothing if this is not one.
[[nodiscard]] std::optional<int> parse_exit_signal(std::string_view name) noexcept;
/// Pure. The name of such a signal.
[[nodiscard]] std::string_view exit_signal_name(int signal) noexcept;

inline constexpr std::size_t kExitSignals = 6;

/// While it lives, these signals do not kill the process: a handler notes that one came, and calls the handler that the
/// program had installed before, if it had. All of a process share one handler for each signal; the last to go restores
/// what was there, unless the program has installed another handler since. In the child of a fork a signal does what it
/// did before. Not to be made or destroyed in a signal handler.
class ExitSignals {
 public:
  /// Names that parse_exit_signal() does not know are left out.
  explicit ExitSignals(const std::vector<std::string>& names);
  ~ExitSignals();
  ExitSignals(const ExitSignals&) = delete;
  ExitSignals& operator=(const ExitSignals&) = delete;

  /// From any thread. A signal that came since this was made, the lowest if several did; 0 if none did.
  [[nodiscard]] int arrived() const noexcept;
  /// Names of signals that cannot be watched: too many handlers were installed over Kedge's and left there.
  [[nodiscard]] const std::vector<std::string>& not_watched() const noexcept { return not_watched_; }

 private:
  std::array<std::optional<std::uint32_t>, kExitSignals> counted_before_;  ///< of the watched signals
  std::vector<std::string> not_watched_;
};

}  // namespace kedge
