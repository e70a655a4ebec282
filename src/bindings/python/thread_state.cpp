#include "bindings/python/thread_state.hpp"

#include <nanobind/nanobind.h>

namespace nb = nanobind;

namespace kedge::python {
namespace {

class ThreadState {
 public:
  ThreadState() {
    if (PyGILState_GetThisThreadState() != nullptr) return;
    (void)PyGILState_Ensure();
    state_ = PyEval_SaveThread();
  }
  ThreadState(const ThreadState&) = delete;
  ThreadState& operator=(const ThreadState&) = delete;
  ~ThreadState() {
    if (state_ == nullptr || !nb::is_alive()) return;  // the interpreter is gone, and the state with it
    PyEval_RestoreThread(state_);
    PyThreadState_Clear(state_);
    PyThreadState_DeleteCurrent();
  }

 private:
  PyThreadState* state_ = nullptr;
};

}  // namespace

void keep_thread_state() { static thread_local const ThreadState state; }

}  // namespace kedge::python
