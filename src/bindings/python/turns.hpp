// Serializes an engine's calls: in Python any thread can reach it.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <set>
#include <string>
#include <thread>

namespace kedge::python {

/// Which calls of other threads a call may overlap.
enum class CallKind : std::uint8_t {
  alone,   ///< none, and no checkpoint opened by another thread
  ends,    ///< none; the checkpoint may have been begun by another thread
  beside,  ///< others of its kind: save, load, routed files, queries
};

/// The current calls of one engine. Thread-safe. Without it, a mistake in a Python program could corrupt the engine.
class CallTurns {
 public:
  /// Throws bad_state if another thread has its turn. Waits for calls that may overlap, since they are local. A thread
  /// may call within its own call, from a callback.
  void begin(CallKind use);
  /// True if the engine was left meanwhile and no call is in progress.
  [[nodiscard]] bool end() noexcept;
  /// Whether this thread has a checkpoint open from now on.
  void set_open(bool is_open) noexcept;
  /// The engine is left. True if no call is in progress; otherwise the last one's end returns true.
  [[nodiscard]] bool leave(const std::string& why);
  [[nodiscard]] std::string why_left() const;

 private:
  using Thread = std::thread::id;
  void check(CallKind use, Thread self) const;
  [[nodiscard]] bool is_idle() const noexcept { return depth_ == 0 && beside_.empty(); }

  mutable std::mutex mutex_;
  Thread alone_;                   ///< of the exclusive call, if any
  Thread opened_;                  ///< with the open checkpoint, if any
  unsigned depth_ = 0;             ///< of nested calls in the exclusive one
  std::multiset<Thread> beside_;   ///< of overlapping calls
  std::condition_variable ended_;  ///< of overlapping calls
  bool is_left_ = false;
  std::string why_left_;
};

}  // namespace kedge::python
