// Work that several threads share, for the length of one call.
#pragma once

#include <csignal>
#include <functional>
#include <future>
#include <system_error>
#include <vector>

namespace kedge {

/// Blocks signals in this thread, and in those that it starts, for its own lifetime: handlers of the application expect
/// to run on its own threads. Signals that an instruction raises stay unblocked, because blocked ones would kill the
/// process without running a handler.
class ScopedSignalBlock {
 public:
  ScopedSignalBlock() noexcept {
    sigset_t blocked;
    sigfillset(&blocked);
    for (const int raised : {SIGBUS, SIGSEGV, SIGFPE, SIGILL, SIGTRAP, SIGSYS}) sigdelset(&blocked, raised);
    ::pthread_sigmask(SIG_SETMASK, &blocked, &previous_mask_);
  }
  ~ScopedSignalBlock() { ::pthread_sigmask(SIG_SETMASK, &previous_mask_, nullptr); }
  ScopedSignalBlock(const ScopedSignalBlock&) = delete;
  ScopedSignalBlock& operator=(const ScopedSignalBlock&) = delete;

 private:
  sigset_t previous_mask_{};
};

/// Runs `work` on this thread and on up to `threads` - 1 more at once, and returns when all have ended. `work` takes
/// its share from something common (an atomic counter), so that all is done even if the system grants fewer threads.
/// Throws what `work` throws on any thread; on several, one of them.
template <class Work>
void run_on_threads(unsigned threads, Work&& work) {
  std::vector<std::future<void>> others;  // waits for its thread when it is destroyed
  if (threads > 1) {
    others.reserve(threads - 1);
    const ScopedSignalBlock blocked;
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
