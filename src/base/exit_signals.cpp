#include "base/exit_signals.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <mutex>

#include "base/signal_action.hpp"

namespace kedge {
namespace {

struct SignalName {
  std::string_view name;
  int number;
};
constexpr std::array<SignalName, kExitSignalCount> kNamed = {{{"SIGTERM", SIGTERM},
                                                              {"SIGINT", SIGINT},
                                                              {"SIGHUP", SIGHUP},
                                                              {"SIGUSR1", SIGUSR1},
                                                              {"SIGUSR2", SIGUSR2},
                                                              {"SIGXCPU", SIGXCPU}}};

// A program may install a handler over Kedge's that calls it, end its engine, and start another: that one needs a
// handler of its own over the program's, or the two would call each other for ever.
constexpr std::size_t kLayers = 4;

using Handler = void (*)(int, siginfo_t*, void*);

/// State of one signal.
struct Watched {
  std::atomic<std::uint32_t> count = 0;  ///< how many came
  std::atomic<std::uint32_t> watchers = 0;
  std::atomic<pid_t> process = 0;  ///< whose watchers they are
  std::size_t used = 0;            ///< layers, from the first on; guarded by `install_mutex`
  std::array<PreviousAction, kLayers> layers;
};
static_assert(std::atomic<std::uint32_t>::is_always_lock_free && std::atomic<pid_t>::is_always_lock_free);

// A handler has no other place to look at. Nothing here is destroyed before the last signal can come.
constinit std::array<Watched, kExitSignalCount> watched{};
constinit std::mutex install_mutex;

constexpr std::optional<std::size_t> index_of(int signal) noexcept {
  for (std::size_t i = 0; i < kNamed.size(); ++i) {
    if (kNamed[i].number == signal) return i;
  }
  return std::nullopt;
}

/// Async-signal-safe, as all that it calls.
void handle(std::size_t layer_number, int signal, siginfo_t* info, void* context) noexcept {
  const int error = errno;
  const auto index = index_of(signal);
  if (!index) return;
  Watched& here = watched[*index];
  PreviousAction& before = here.layers[layer_number];
  if (here.watchers.load() != 0 && ::getpid() == here.process.load()) {
    here.count.fetch_add(1);
  } else if (is_default(before.action)) {
    // Nobody watches: this is the child of a fork, or the program calls a handler that it found while an engine lived.
    raise_with_default_action(signal);
  }
  (void)before.call(signal, info, context);
  errno = error;
}

template <std::size_t layer>
void on_signal(int signal, siginfo_t* info, void* context) {
  handle(layer, signal, info, context);
}
constexpr std::array<Handler, kLayers> kHandlers = {on_signal<0>, on_signal<1>, on_signal<2>, on_signal<3>};

bool is_installed_action(const struct sigaction& action, Handler handler) noexcept {
  return has_flag(action, SA_SIGINFO) && action.sa_sigaction == handler;
}

/// Under `install_mutex`. False if every layer is in use.
bool install_handler(int signal, Watched& here) {
  struct sigaction now {};
  if (::sigaction(signal, nullptr, &now) != 0) return false;
  here.process = ::getpid();
  for (const Handler handler : kHandlers) {
    if (is_installed_action(now, handler)) return true;
  }
  if (here.used == kLayers) return false;
  PreviousAction& before = here.layers[here.used];
  before.action = now;
  before.was_called = false;
  struct sigaction ours {};
  ours.sa_sigaction = kHandlers[here.used];
  ours.sa_mask = now.sa_mask;
  // Flags that the program's handler relies on stay; where it has none, its system calls should not notice.
  const int kept = SA_RESTART | SA_NODEFER;
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK | (is_handler(now) ? now.sa_flags & kept : SA_RESTART);
  if (::sigaction(signal, &ours, nullptr) != 0) return false;
  ++here.used;
  return true;
}

/// Under `install_mutex`. What the program has installed over it stays, and may call it.
void restore_action(int signal, Watched& here) {
  struct sigaction now {};
  if (here.used == 0 || ::sigaction(signal, nullptr, &now) != 0 || !is_installed_action(now, kHandlers[here.used - 1]))
    return;
  if (::sigaction(signal, &here.layers[here.used - 1].action, nullptr) == 0) --here.used;
}

}  // namespace

std::optional<int> parse_exit_signal(std::string_view name) noexcept {
  for (const SignalName& signal : kNamed) {
    if (signal.name == name) return signal.number;
  }
  return std::nullopt;
}

std::string_view exit_signal_name(int signal) noexcept {
  const auto index = index_of(signal);
  return index ? kNamed[*index].name : "a signal";
}

ExitSignals::ExitSignals(const std::vector<std::string>& names) {
  const std::lock_guard guard(install_mutex);
  for (std::size_t i = 0; i < kNamed.size(); ++i) {
    const auto& [name, signal] = kNamed[i];
    if (std::ranges::find(names, name) == names.end()) continue;
    Watched& here = watched[i];
    const std::uint32_t before = here.count.load();
    here.watchers.fetch_add(1);  // first: what comes to the handler from then on is for them
    if (install_handler(signal, here)) {
      initial_counts_[i] = before;
    } else {
      here.watchers.fetch_sub(1);
      unwatched_signals_.emplace_back(name);
    }
  }
}

ExitSignals::~ExitSignals() {
  const std::lock_guard guard(install_mutex);
  for (std::size_t i = 0; i < kNamed.size(); ++i) {
    if (initial_counts_[i] && watched[i].watchers.fetch_sub(1) == 1) restore_action(kNamed[i].number, watched[i]);
  }
}

int ExitSignals::received_signal() const noexcept {
  for (std::size_t i = 0; i < kNamed.size(); ++i) {
    if (initial_counts_[i] && watched[i].count.load() != *initial_counts_[i]) return kNamed[i].number;
  }
  return 0;
}

}  // namespace kedge
