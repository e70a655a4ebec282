// Calls that release the interpreter's lock and take it again, whatever the interpreter does meanwhile.
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

/// Never returns: for threads that must not touch an interpreter that is ending. They end with the process.
[[noreturn]] void sleep_forever() noexcept;

/// Releases the interpreter's lock. Python ends a thread that takes the lock while the interpreter ends, which must not
/// unwind through C++ code: such a thread sleeps instead.
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

/// Takes the lock, in a thread that may already have it.
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

/// Runs code that calls Python, with the lock. Python may end the thread meanwhile.
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

/// An engine that Python may release while objects of a traceback still refer to it.
class Engine {
 public:
  explicit Engine(std::unique_ptr<kedge::Engine> engine);
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;
  ~Engine() { detach(); }

  /// Local. Destroys the engine, without the lock: its end may wait for a thread that logs by calling Python.
  void detach();
  /// Local. Ends the engine because of an error or exit of the application: now, or with another thread's current call,
  /// whatever still refers to it. Later calls throw bad_state. `why` is sent to the other ranks, if not empty.
  void leave(const std::string& why);
  /// Requires the lock. Throws bad_state if the engine was left.
  [[nodiscard]] std::shared_ptr<kedge::Engine> held() const;
  [[nodiscard]] const std::shared_ptr<CallTurns>& turns() const noexcept { return turns_; }

 private:
  friend void end_engines() noexcept;
  std::shared_ptr<kedge::Engine> engine_;
  std::shared_ptr<CallTurns> turns_ = std::make_shared<CallTurns>();
};

/// A call of an engine in progress, without the lock. Once the interpreter ends, only the thread that ends it may begin
/// calls.
class Call {
 public:
  /// Throws bad_state if another thread has its turn. The engine is null while it is being made.
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

/// Runs the body with the engine and without the lock.
template <class Body>
auto call(const Engine& engine, CallKind use, Body&& body) {
  const Call under_way(engine.held(), engine.turns(), use);
  return std::forward<Body>(body)(under_way.engine());
}
template <class Body>
auto call(const Engine& engine, Body&& body) {
  return call(engine, CallKind::alone, std::forward<Body>(body));
}

/// Called by the thread that ends the interpreter: waits for other threads' calls and lets none begin. Returns whether
/// they have ended.
[[nodiscard]] bool end_calls(std::chrono::duration<double> at_most);

/// Local. After the interpreter has ended: ends the engines that something still refers to.
void end_engines() noexcept;

}  // namespace kedge::python
