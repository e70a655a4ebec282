// The threads of a rank in real time: what a communicator offers that has none of its own.
#include <sys/resource.h>

#include <cerrno>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "base/run_on_threads.hpp"
#include "kedge/communicator.hpp"

namespace kedge {
namespace {

// About a tenth of a core that the application's threads keep busy: enough to get on, little enough not to be felt.
constexpr int kBackgroundNiceness = 10;

/// On Linux the calling thread's own priority.
void yield_cpu() noexcept {
  errno = 0;
  const int nice = ::getpriority(PRIO_PROCESS, 0);
  if (errno == 0) (void)::setpriority(PRIO_PROCESS, 0, nice + kBackgroundNiceness);
}

/// Says once, to one thread, that something has happened.
class Event {
 public:
  void raise() noexcept {
    {
      const std::lock_guard lock(mutex_);
      raised_ = true;
    }
    changed_.notify_all();
  }
  /// `then` is what raised becomes.
  [[nodiscard]] bool wait(Deadline deadline, bool then) {
    WaitTimer wait_timer(deadline);
    std::unique_lock lock(mutex_);
    const auto is_raised = [this] { return raised_; };
    if (!deadline.finite()) changed_.wait(lock, is_raised);
    while (!raised_) {
      if (wait_timer.is_over()) return false;
      changed_.wait_for(lock, wait_timer.slice(), is_raised);
    }
    raised_ = then;
    return true;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool raised_ = false;
};

class RealSignal final : public Communicator::Signal {
 public:
  void raise() noexcept override { event_.raise(); }
  [[nodiscard]] bool wait(Deadline deadline) override { return event_.wait(deadline, false); }

 private:
  Event event_;
};

class RealThread final : public Communicator::Thread {
 public:
  explicit RealThread(std::function<void()> body) {
    const ScopedSignalBlock blocked;
    thread_ = std::thread([ended = ended_, body = std::move(body)]() mutable {
      yield_cpu();
      body();
      body = nullptr;  // what it owns goes before anybody hears of the end
      ended->raise();
    });
  }
  ~RealThread() override {
    if (thread_.joinable()) thread_.join();
  }
  [[nodiscard]] bool join(Deadline deadline) override {
    if (!thread_.joinable()) return true;
    if (!ended_->wait(deadline, true)) {
      thread_.detach();
      return false;
    }
    thread_.join();
    return true;
  }

 private:
  std::shared_ptr<Event> ended_ = std::make_shared<Event>();
  std::thread thread_;
};

}  // namespace

std::unique_ptr<Communicator::Signal> Communicator::signal() { return std::make_unique<RealSignal>(); }

std::unique_ptr<Communicator::Thread> Communicator::start_thread(std::function<void()> body) {
  return std::make_unique<RealThread>(std::move(body));
}

}  // namespace kedge
