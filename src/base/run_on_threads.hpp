// Work that several threads share, for the length of one call.
#pragma once

#include <csignal>
#include <functional>
#include <future>
#include <system_error>
#include <vector>

namespace kedge {

/// While it lives, signals do not reach this thread or those that it starts: handlers of the application expect to run
/// on the application's own threads. What an instruction of these threads raises does: blocked, it would kill the
/// process without running any handler.
class SignalsBlocked {
 public:
  SignalsBlocked() noexcept {
    sigset_t blocked;
    sigfillset(&blocked);
    for (const int raised : {SIGBUS, SIGSEGV, SIGFPE, SIGILL, SIGTRAP, SIGSYS}) sigdelset(&blocked, raised);
    ::pthread_sigmask(SIG_SETMASK, &blocked, &before_);
  }
  ~SignalsBlocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_{};
};

/// Runs `work` on this thread and on up to `threads` - 1 more at once, and returns when all have ended. `work` takes
/// its share from something common (an atomic counter), so that it is done whoever does it: where the system gives no
/// thread, fewer do. What `work` throws on any thread, this one throws; on several, one of them.
template <class Work>
void run_on_threads(unsigned threads, Work&& work) {
  std::vector<std::future<void>> others;  // waits for its thread when it is destroyed
  if (threads > 1) {
    others.reserve(threads - 1);
    const SignalsBlocked blocked;
    try {
      while (others.size() < threads - 1) others.push_back(std::async(std::launch::async, std::ref(work)));
    } catch (const std::system_error&) {
      // The system has no more threads.
    }
  }
  work();
  for (auto& other : others) other.get();
}

}  // namespace kedge
