// Calls that leave the interpreter: its lock is released in them, and taken again however the interpreter ends
// meanwhile.
#pragma once

#include <nanobind/nanobind.h>

#include <chrono>
#include <exception>
#include <memory>
#include <string>
#include <utility>

#include "bindings/python/turns.hpp"
#include "kedge/engine.hpp"

namespace kedge::python {

/// Never returns: for a thread that must not touch an interpreter that ends. The process ends with its main thread.
[[noreturn]] void sleep_forever() noexcept;

/// Without the interpreter's lock. A thread that wants it back when the interpreter ends is ended by Python, and that
/// must not go through C++ which does not expect it: it rests instead.
class GilRelease {
 public:
  GilRelease() : state_(PyEval_SaveThread()) {}
  GilRelease(const GilRelease&) = delete;
  GilRelease& operator=(const GilRelease&) = delete;
  ~GilRelease() {
    try {
      PyEval_RestoreThread(state_);
    } catch (...) {
      sleep_forever();
    }
  }

 private:
  PyThreadState* state_;
};

/// With the lock, in a thread that may have it already.
class GilAcquire {
 public:
  GilAcquire() noexcept : state_(taken()) {}
  GilAcquire(const GilAcquire&) = delete;
  GilAcquire& operator=(const GilAcquire&) = delete;
  ~GilAcquire() { PyGILState_Release(state_); }

 private:
  static PyGILState_STATE taken() noexcept {
    try {
      return PyGILState_Ensure();
    } catch (...) {
      sleep_forever();
    }
  }

  PyGILState_STATE state_;
};

/// Runs what calls Python, with the lock. Python may end the thread meanwhile.
template <class Body>
auto in_interpreter(Body&& body) {
  const GilAcquire locked;
  try {
    return std::forward<Body>(body)();
  } catch (const std::exception&) {
    throw;
  } catch (...) {
    sleep_forever();
  }
}

/// One engine, which Python may let go of while the objects of a traceback still refer to it.
class Engine {
 public:
  explicit Engine(std::unique_ptr<kedge::Engine> engine);
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;
  ~Engine() { let_go(); }

  /// Local. Destroys the engine, whose end may wait for a thread that logs by calling into Python: without the lock.
  void let_go();
  /// Local. An error, or an exit, of the application ends it: its lock is released, whatever still refers to it, at
  /// once or with the call that another thread is in. Calls throw bad_state from then on.
  /// `why` is for the other ranks, if there is something to tell.
  void leave(const std::string& why);
  /// With the lock held. Throws bad_state if it was left.
  [[nodiscard]] std::shared_ptr<kedge::Engine> held() const;
  [[nodiscard]] const std::shared_ptr<CallTurns>& turns() const noexcept { return turns_; }

 private:
  friend void end_engines() noexcept;
  std::shared_ptr<kedge::Engine> engine_;
  std::shared_ptr<CallTurns> turns_ = std::make_shared<CallTurns>();
};

/// While it lives, a call of an engine is under way, without the lock. Once the interpreter ends, only the thread that
/// ends it begins calls.
class Call {
 public:
  /// Throws bad_state if it is another thread's turn. Without an engine: it is being made.
  Call(std::shared_ptr<kedge::Engine> engine, std::shared_ptr<CallTurns> turns, CallKind use);
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  ~Call();
  [[nodiscard]] kedge::Engine& engine() const noexcept { return *engine_; }

 private:
  GilRelease unlocked_;  // the engine may end with the call, before the lock is taken again
  std::shared_ptr<kedge::Engine> engine_;
  std::shared_ptr<CallTurns> turns_;
};

/// Runs the body with the engine, without the lock.
template <class Body>
auto call(const Engine& engine, CallKind use, Body&& body) {
  const Call under_way(engine.held(), engine.turns(), use);
  return std::forward<Body>(body)(under_way.engine());
}
template <class Body>
auto call(const Engine& engine, Body&& body) {
  return call(engine, CallKind::alone, std::forward<Body>(body));
}

/// The interpreter ends, in this thread. Waits for calls of other threads that are under way, and lets them begin no
/// others. Whether they have ended.
[[nodiscard]] bool end_calls(std::chrono::duration<double> at_most);

/// Local. The interpreter has ended: engines that something still refers to end now, before the process does.
void end_engines() noexcept;

}  // namespace kedge::python
