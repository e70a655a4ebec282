#include "bindings/python/calls.hpp"

#include <unistd.h>

#include <condition_variable>
#include <mutex>
#include <set>
#include <thread>

#include "kedge/communicator.hpp"
#include "kedge/error.hpp"
#include "kedge/for_bindings.hpp"

namespace kedge::python {
namespace {

/// Calls of all engines, as there is one interpreter. Never destroyed: threads may still sleep in it when the process
/// ends.
struct Calls {
  pid_t process = ::getpid();
  std::mutex mutex;
  std::condition_variable ended;
  std::size_t in_progress = 0;
  std::set<Engine*> engines;
  bool is_over = false;
  std::thread::id ends_it;
};

Calls& calls() {
  static auto* const all = new Calls;  // NOLINT(cppcoreguidelines-owning-memory)
  return *all;
}

/// In a forked child, a thread that does not exist there may hold the lock, and the engines belong to the parent.
bool is_child() { return calls().process != ::getpid(); }

}  // namespace

void sleep_forever() noexcept {
  while (true) std::this_thread::sleep_for(std::chrono::hours(1));
}

Engine::Engine(std::unique_ptr<kedge::Engine> engine) : engine_(std::move(engine)) {
  if (is_child()) return;
  const std::lock_guard guard(calls().mutex);
  calls().engines.insert(this);
}

void Engine::detach() {
  if (engine_ == nullptr) return;
  if (!is_child()) {
    const std::lock_guard guard(calls().mutex);
    calls().engines.erase(this);
  }
  auto engine = std::move(engine_);
  const GilRelease unlocked;
  engine.reset();
}

void Engine::leave(const std::string& why) {
  if (engine_ == nullptr) return;
  if (is_child() || turns_->leave(why)) kedge::ForBindings::leave_by_error(*engine_, why);
  detach();
}

std::shared_ptr<kedge::Engine> Engine::held() const {
  if (engine_ == nullptr) {
    throw Error(ErrorCode::bad_state,
                "this engine has ended: its with block was left by an exception or an exit; make another");
  }
  return engine_;
}

Call::Call(std::shared_ptr<kedge::Engine> engine, std::shared_ptr<CallTurns> turns, CallKind use)
    : engine_(std::move(engine)), turns_(std::move(turns)) {
  if (is_child()) return;
  if (turns_ != nullptr) turns_->begin(use);
  Calls& all = calls();
  const std::lock_guard guard(all.mutex);
  const bool may_begin = !all.is_over || all.ends_it == std::this_thread::get_id();
  if (may_begin) {
    ++all.in_progress;
    return;
  }
  all.mutex.unlock();
  if (turns_ != nullptr) (void)turns_->end();  // the thread that ends the interpreter may call this
  sleep_forever();
}

Call::~Call() {
  const bool is_left = turns_ != nullptr && !is_child() && turns_->end();
  if (is_left) kedge::ForBindings::leave_by_error(*engine_, turns_->why_left());
  engine_.reset();
  if (is_child()) return;
  Calls& all = calls();
  const std::lock_guard guard(all.mutex);
  --all.in_progress;
  all.ended.notify_all();
}

bool end_calls(std::chrono::duration<double> at_most) {
  if (is_child()) return true;
  const GilRelease unlocked;
  Calls& all = calls();
  std::unique_lock lock(all.mutex);
  all.is_over = true;
  all.ends_it = std::this_thread::get_id();
  WaitTimer wait_timer(Deadline::after(at_most));
  while (all.in_progress != 0) {
    if (wait_timer.is_over()) return false;
    all.ended.wait_for(lock, wait_timer.slice());
  }
  return true;
}

void end_engines() noexcept {
  if (is_child()) return;
  Calls& all = calls();
  std::set<Engine*> left;
  {
    const std::lock_guard guard(all.mutex);
    if (all.in_progress == 0) left.swap(all.engines);  // otherwise a thread is still in a call of one
  }
  // Sleeping threads hold references, which they never release.
  for (Engine* engine : left) const kedge::Engine ends(std::move(*engine->engine_));
}

}  // namespace kedge::python
