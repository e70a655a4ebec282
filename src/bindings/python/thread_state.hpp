// The interpreter's state of a thread that it did not start.
#pragma once

namespace kedge::python {

/// The calling thread keeps what the interpreter knows of it until it ends, instead of entering and leaving the
/// interpreter's list of threads with each call into Python. That list has a lock, and in CPython 3.11 a child that the
/// application forks while another thread holds it waits for it for ever. A thread that the interpreter knows already
/// stays as it is. False if the interpreter exits meanwhile: do not call into Python then, it would end this thread.
[[nodiscard]] bool keep_thread_state();

/// Whether the interpreter ends, or is gone: what belongs to it goes with it.
[[nodiscard]] bool is_interpreter_ending();

}  // namespace kedge::python
