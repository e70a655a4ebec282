#include "bindings/python/turns.hpp"

#include "kedge/error.hpp"

namespace kedge::python {
namespace {

[[noreturn]] void refuse(const char* what) {
  throw Error(
      ErrorCode::bad_state,
      std::string(what) +
          ": only one thread at a time may call an engine (save, load, route_in and route_out of one checkpoint "
          "may overlap); make all calls from one thread, or hold a lock around the whole with statement. The "
          "other thread's call is not affected");
}

}  // namespace

void CallTurns::check(CallKind use, Thread self) const {
  if (use == CallKind::beside && beside_.contains(self)) return;  // within such a call of its own
  if (alone_ != Thread()) refuse("another thread is in a call of this engine");
  if (use == CallKind::beside) return;
  if (use == CallKind::alone && opened_ != Thread() && opened_ != self) {
    refuse("another thread has a checkpoint of this engine open");
  }
  if (beside_.contains(self)) refuse("this thread is in a call of this engine, which has called back");
}

void CallTurns::begin(CallKind use) {
  const Thread self = std::this_thread::get_id();
  std::unique_lock lock(mutex_);
  if (alone_ == self) {
    ++depth_;
    return;
  }
  if (is_left_ && !beside_.contains(self)) {
    throw Error(ErrorCode::bad_state, "this engine has ended: another thread has left its with block; make another");
  }
  check(use, self);
  if (use == CallKind::beside) {
    beside_.insert(self);
    return;
  }
  alone_ = self;  // before the wait, to keep others from beginning
  depth_ = 1;
  ended_.wait(lock, [&] { return beside_.empty(); });
}

bool CallTurns::end() noexcept {
  const Thread self = std::this_thread::get_id();
  const std::lock_guard guard(mutex_);
  if (alone_ == self) {
    if (--depth_ == 0) alone_ = Thread();
  } else {
    beside_.extract(self);
    ended_.notify_all();
  }
  return is_left_ && is_idle();
}

void CallTurns::set_open(bool is_open) noexcept {
  const std::lock_guard guard(mutex_);
  opened_ = is_open ? std::this_thread::get_id() : Thread();
}

std::string CallTurns::why_left() const {
  const std::lock_guard guard(mutex_);
  return why_left_;
}

bool CallTurns::leave(const std::string& why) {
  const std::lock_guard guard(mutex_);
  why_left_ = why;
  is_left_ = true;
  return is_idle();
}

}  // namespace kedge::python
