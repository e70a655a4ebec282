// What a process does when a signal comes, as far as handlers that are put before another need it. All of it may be
// called in a handler.
#pragma once

#include <cerrno>
#include <csignal>

namespace kedge {

inline bool has_flag(const struct sigaction& action, unsigned flag) noexcept {
  return (static_cast<unsigned>(action.sa_flags) & flag) != 0;
}

inline bool is_handler(const struct sigaction& action) noexcept {
  return has_flag(action, SA_SIGINFO) || (action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN);
}

/// `action` is a handler.
inline void call_handler(const struct sigaction& action, int signal, siginfo_t* info, void* context) noexcept {
  if (has_flag(action, SA_SIGINFO)) action.sa_sigaction(signal, info, context);
  else action.sa_handler(signal);
}

/// What kills the process comes as soon as the handler returns.
inline void be_killed_by(int signal) noexcept {
  struct sigaction action {};
  action.sa_handler = SIG_DFL;
  sigemptyset(&action.sa_mask);
  if (::sigaction(signal, &action, nullptr) == 0) (void)::raise(signal);
}

}  // namespace kedge
