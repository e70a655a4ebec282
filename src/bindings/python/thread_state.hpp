// The interpreter's state for threads that it did not start.
#pragma once

namespace kedge::python {

/// Keeps the interpreter's state of the calling thread until the thread ends, instead of entering and leaving the
/// interpreter's list of threads with each call. In CPython 3.11, a forked child would wait forever for that list's
/// lock if another thread held it. Does nothing for threads that the interpreter knows. False if the interpreter is
/// exiting: calling Python would then end this thread.
[[nodiscard]] bool keep_thread_state();

/// Whether the interpreter is ending or has ended, and its objects with it.
[[nodiscard]] bool is_interpreter_ending();

}  // namespace kedge::python
