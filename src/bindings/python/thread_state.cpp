#include "bindings/python/thread_state.hpp"

#include <nanobind/nanobind.h>

namespace nb = nanobind;

namespace kedge::python {

bool is_interpreter_ending() {
#if PY_VERSION_HEX >= 0x030D0000
  return !nb::is_alive() || Py_IsFinalizing() != 0;
#else
  return !nb::is_alive() || _Py_IsFinalizing() != 0;
#endif
}

namespace {

/// The state of a thread of the engine; Python's own threads need none here, since one of them may be the one that ends
/// the interpreter.
class ThreadState {
 public:
  ThreadState() {
    if (known_ || is_interpreter_ending()) return;
    (void)PyGILState_Ensure();
    state_ = PyEval_SaveThread();
  }
  ThreadState(const ThreadState&) = delete;
  ThreadState& operator=(const ThreadState&) = delete;
  ~ThreadState() {
    if (state_ == nullptr || is_interpreter_ending()) return;  // the interpreter has freed the state
    PyEval_RestoreThread(state_);
    PyThreadState_Clear(state_);
    PyThreadState_DeleteCurrent();
  }
  [[nodiscard]] bool is_usable() const {
    return known_ ? nb::is_alive() : state_ != nullptr && !is_interpreter_ending();
  }

 private:
  bool known_ = nb::is_alive() && PyGILState_GetThisThreadState() != nullptr;
  PyThreadState* state_ = nullptr;
};

}  // namespace

bool keep_thread_state() {
  static thread_local const ThreadState state;
  return state.is_usable();
}

}  // namespace kedge::python
