// Signal actions, for handlers that are installed over others. All of it may be called in a handler.
#pragma once

#include <atomic>
#include <csignal>

namespace kedge {

inline bool has_flag(const struct sigaction& action, unsigned flag) noexcept {
  return (static_cast<unsigned>(action.sa_flags) & flag) != 0;
}

inline bool is_handler(const struct sigaction& action) noexcept {
  return has_flag(action, SA_SIGINFO) || (action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN);
}

inline bool is_default(const struct sigaction& action) noexcept {
  return !has_flag(action, SA_SIGINFO) && action.sa_handler == SIG_DFL;
}

/// Calls the action's handler; it must have one.
inline void call_handler(const struct sigaction& action, int signal, siginfo_t* info, void* context) noexcept {
  if (has_flag(action, SA_SIGINFO)) action.sa_sigaction(signal, info, context);
  else action.sa_handler(signal);
}

/// The action that a handler of Kedge's replaced. Written before that handler is installed.
struct PreviousAction {
  struct sigaction action {};
  std::atomic<bool> was_called = false;

  /// Calls the handler. Returns false if there is none, or it was for one signal and has had that.
  bool call(int signal, siginfo_t* info, void* context) noexcept {
    if (!is_handler(action)) return false;
    if (was_called.exchange(true) && has_flag(action, SA_RESETHAND)) return false;
    call_handler(action, signal, info, context);
    return true;
  }
};
static_assert(std::atomic<bool>::is_always_lock_free);

/// Raises the signal with its default action: the process ends as soon as the handler returns.
inline void raise_with_default_action(int signal) noexcept {
  struct sigaction action {};
  action.sa_handler = SIG_DFL;
  sigemptyset(&action.sa_mask);
  if (::sigaction(signal, &action, nullptr) == 0) (void)::raise(signal);
}

}  // namespace kedge
