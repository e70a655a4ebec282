#include "base/awake_time.hpp"

#include <algorithm>
#include <atomic>
#include <mutex>

#include "kedge/communicator.hpp"

namespace kedge {
namespace {

using Time = Deadline::Clock::time_point;

/// Suspended time of the process: a stop that any thread's wait finds counts for all threads, which were stopped too.
class ProcessTime {
 public:
  /// A second thread that saw the same stop finds it counted when this returns.
  void record_check(Time before, Time now) noexcept {
    if (now - before <= AwakeTime::kLongestPoll) return;
    const std::lock_guard guard(mutex_);
    awake_.record_check(before.time_since_epoch(), now.time_since_epoch());
    uncounted_ = std::chrono::duration_cast<Deadline::Clock::duration>(awake_.uncounted_time());
    stopped_s_ = awake_.stopped_time().count();
  }
  [[nodiscard]] Deadline::Clock::duration uncounted() const noexcept { return uncounted_; }
  [[nodiscard]] double stopped_s() const noexcept { return stopped_s_; }

 private:
  std::mutex mutex_;
  AwakeTime awake_{Deadline::Clock::now().time_since_epoch()};
  std::atomic<Deadline::Clock::duration> uncounted_ = Deadline::Clock::duration::zero();
  std::atomic<double> stopped_s_ = 0;
};

ProcessTime& process_time() noexcept {
  static ProcessTime time;
  return time;
}

}  // namespace

void AwakeTime::record_check(Seconds before, Seconds now) noexcept {
  const Seconds from = std::max(before, last_stop_end_);
  const Seconds stop = now - from;
  if (stop <= kLongestPoll) return;
  // Half of what was awake counts in any case: a job that is suspended again and again still finds who is missing.
  const Seconds grace = std::min({kGraceMax, (from - last_stop_end_) / 2, stop / 2});
  uncounted_time_ += stop - kLongestPoll + grace;
  stopped_time_ += stop;
  last_stop_end_ = now;
}

double WaitTime::elapsed_s() {
  const AwakeTime::Seconds now(clock_.seconds());
  awake_.record_check(last_check_, now);
  last_check_ = now;
  return (now - start_ - awake_.uncounted_time()).count();
}

Deadline::Clock::time_point Deadline::now() noexcept { return Clock::now() - process_time().uncounted(); }

double Deadline::process_stopped_s() noexcept { return process_time().stopped_s(); }

WaitTimer::WaitTimer(Deadline deadline) noexcept : deadline_(deadline), last_check_(Deadline::Clock::now()) {}

/// The awaited event may have come while the process was stopped; the next wait may have the same deadline.
WaitTimer::~WaitTimer() {
  if (deadline_.finite()) process_time().record_check(last_check_, Deadline::Clock::now());
}

bool WaitTimer::is_over() noexcept {
  if (!deadline_.finite()) return false;
  const Time now = Deadline::Clock::now();
  process_time().record_check(last_check_, now);
  last_check_ = now;
  return deadline_.passed();
}

std::chrono::duration<double> WaitTimer::slice() const noexcept {
  constexpr double kSlice_s = 0.1;  // far below AwakeTime::kLongestPoll
  return std::chrono::duration<double>(std::min(kSlice_s, deadline_.seconds_left()));
}

}  // namespace kedge
