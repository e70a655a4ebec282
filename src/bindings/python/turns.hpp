// Which thread's turn an engine has: one at a time may call it, in a language where any thread can reach it.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <set>
#include <string>
#include <thread>

namespace kedge::python {

/// Which calls of other threads a call may run beside.
enum class CallKind : std::uint8_t {
  alone,   ///< no call, and no checkpoint that another thread has open
  ends,    ///< no call: the thread that ends a checkpoint may be another one than began it
  beside,  ///< calls of its kind: save, load, routed files, and what only looks at the open checkpoint
};

/// The calls of one engine that are under way. From any thread; an engine that is called out of turn would be
/// destroyed, which a mistake in a Python program must not cause.
class CallTurns {
 public:
  /// Throws bad_state if it is another thread's turn, whose call goes on. Waits for calls that run beside each other:
  /// they are local. A thread may call within its own call, from a callback.
  void begin(CallKind use);
  /// True if the engine was left meanwhile, and no call is under way any more.
  [[nodiscard]] bool end() noexcept;
  /// This thread has a checkpoint open from now on; or nobody has.
  void note_open(bool is_open) noexcept;
  /// The engine is left. True if no call is under way; else the last one's end says so.
  [[nodiscard]] bool leave(const std::string& why);
  [[nodiscard]] std::string why_left() const;

 private:
  using Thread = std::thread::id;
  void check(CallKind use, Thread self) const;
  [[nodiscard]] bool is_idle() const noexcept { return depth_ == 0 && beside_.empty(); }

  mutable std::mutex mutex_;
  Thread alone_;                   ///< whose call runs alone; none: Thread{}
  Thread opened_;                  ///< who has a checkpoint open
  unsigned depth_ = 0;             ///< calls of the thread that runs alone
  std::multiset<Thread> beside_;   ///< whose calls run beside each other
  std::condition_variable ended_;  ///< one of these
  bool is_left_ = false;
  std::string why_left_;
};

}  // namespace kedge::python
