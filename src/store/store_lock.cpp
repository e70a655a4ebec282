#include "store/store_lock.hpp"

#include <unistd.h>

#include <charconv>
#include <chrono>
#include <optional>
#include <string_view>
#include <utility>

#include "base/attempt.hpp"
#include "base/awake_time.hpp"
#include "base/text.hpp"
#include "kedge/error.hpp"
#include "store/file_name.hpp"

namespace kedge::store {
namespace {

constexpr std::chrono::milliseconds kLockPollInterval{50};
constexpr double kSilent_s = 2;  // not reported: the other job was probably just killed

/// A parsed lock file name.
struct LockName {
  std::uint64_t incarnation = 0;
  std::string_view rank;
};

std::optional<LockName> parse_lock(std::string_view name) {
  if (!name.starts_with(kLockPrefix)) return std::nullopt;
  name.remove_prefix(kLockPrefix.size());
  LockName lock;
  const char* behind = name.data() + name.size();
  const auto [end, error] = std::from_chars(name.data(), behind, lock.incarnation);
  if (error != std::errc{} || end == behind || *end != '.') return std::nullopt;
  lock.rank = {end + 1, behind};
  return lock;
}

/// If a lock file cannot be opened, only a person can find out whether a process still holds it.
template <class Step>
void with_open_advice(fs::FileSystem& file_system, const std::string& path, Step&& step) {
  bool was_there = false;
  (void)attempt([&] { was_there = file_system.status(path).has_value(); });
  auto failure = attempt(std::forward<Step>(step));
  if (!failure) return;
  rethrow_with_advice(*std::move(failure),
                      was_there
                          ? "; Kedge cannot tell whether the job that created this lock is still using the node-local "
                            "store: once that job has ended, remove this file"
                          : "; the node-local store needs a filesystem with file locks: set store.path to one");
}

}  // namespace

std::optional<std::string> lock_holder(fs::FileSystem& file_system, const std::string& path) {
  std::optional<std::string> holder;
  with_open_advice(file_system, path, [&] { holder = file_system.lock_holder(path); });
  return holder;
}

std::optional<std::uint64_t> incarnation_of_lock(std::string_view name) {
  const auto lock = parse_lock(name);
  return lock ? std::optional(lock->incarnation) : std::nullopt;
}

StoreLock::StoreLock(std::shared_ptr<fs::FileSystem> file_system, std::string directory, std::uint64_t incarnation,
                     int rank, Clock& clock, double timeout_s,
                     const std::function<void(const std::string& holder)>& on_wait)
    : file_system_(std::move(file_system)),
      directory_(std::move(directory)),
      incarnation_(incarnation),
      rank_(rank),
      path_(fs::join(directory_, compose("{}{}.{}", kLockPrefix, incarnation, rank))) {
  take_lock();
  wait_for_older(clock, timeout_s, on_wait);
}

void StoreLock::take_lock() {
  with_open_advice(*file_system_, path_, [&] {
    lock_ =
        file_system_->try_lock(path_, compose("incarnation {}, rank {}, process {}", incarnation_, rank_, ::getpid()));
  });
  if (!lock_) {
    throw Error(
        Failure{ErrorCode::busy,
                compose("the node-local store is in use by {}; end that job, or set a different run name for this one",
                        lock_holder(*file_system_, path_).value_or("another process")),
                -1, path_, 0});
  }
}

StoreLock::~StoreLock() = default;

bool StoreLock::is_held() const { return lock_ && file_system_->holds_lock(path_); }

void StoreLock::retake_lock(Clock& clock) {
  lock_.reset();
  take_lock();
  wait_for_older(clock, 0, {});
}

void StoreLock::wait_for_older(Clock& clock, double timeout_s, const std::function<void(const std::string&)>& on_wait) {
  WaitTime waited(clock);
  bool said = !on_wait;
  for (const std::string& name : file_system_->list(directory_)) {
    const auto lock = parse_lock(name);
    if (!lock || lock->incarnation == incarnation_) continue;
    const std::string path = fs::join(directory_, name);
    auto holder = lock_holder(*file_system_, path);
    // Waiting is useless: this very process holds the lock.
    if (holder && lock->rank == std::to_string(rank_) && file_system_->holds_lock(path)) {
      throw Error(Failure{ErrorCode::busy,
                          "this process still has an engine for this run; finalize it before making another", -1, path,
                          0});
    }
    if (holder && lock->incarnation > incarnation_) {
      throw Error(Failure{ErrorCode::busy,
                          "a newer start of this run has taken over the node-local store (" + *holder +
                              "); end one of the two jobs, or set different run names",
                          -1, path, 0});
    }
    while (holder) {
      const double waited_s = waited.elapsed_s();
      if (!said && waited_s >= kSilent_s) {
        on_wait(*holder);
        said = true;
      }
      if (waited_s >= timeout_s) {
        throw Error(
            Failure{ErrorCode::busy,
                    compose("an earlier start of this run still uses the node-local store after {:.0f} s ({}); "
                            "end it, raise store.lock_timeout_s, or, if both are to run, give each its KEDGE_RUN",
                            timeout_s, *holder),
                    -1, path, 0});
      }
      clock.sleep_for(kLockPollInterval);
      holder = lock_holder(*file_system_, path);
    }
    if (lock->incarnation < incarnation_) older_locks_.push_back(path);
  }
}

void StoreLock::remove_older() {
  for (const std::string& path : older_locks_) file_system_->remove(path);
  older_locks_.clear();
}

void StoreLock::release() {
  if (!lock_) return;
  // Removed while held, so that a later start sees a held lock or none. A file that replaced it is another process's.
  if (is_held()) file_system_->remove(path_);
  lock_.reset();
}

}  // namespace kedge::store
