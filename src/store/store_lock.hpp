// Keeps two engine starts from using one store: every process holds a lock with its incarnation.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "fs/file_system.hpp"

namespace kedge::store {

/// Local. The text of a store lock's holder; nothing if it is free. Throws Error{io} with the remedy if the lock cannot
/// be opened, because it may be held.
[[nodiscard]] std::optional<std::string> lock_holder(fs::FileSystem& file_system, const std::string& path);

/// Pure. The incarnation in a lock file's name; nothing for other names.
[[nodiscard]] std::optional<std::uint64_t> incarnation_of_lock(std::string_view name);

/// This process's lock on the run's directory, released when destroyed or when the process dies.
class StoreLock {
 public:
  /// Takes `<directory>/lock.<incarnation>.<rank>`, then waits up to `timeout_s` until no process of an older
  /// incarnation holds one; after some seconds calls `on_wait` once with the holder's name. Throws Error{busy} with the
  /// holder's name, immediately if a newer incarnation or an older engine of this process and rank holds it; io if a
  /// lock cannot be opened.
  StoreLock(std::shared_ptr<fs::FileSystem> file_system, std::string directory, std::uint64_t incarnation, int rank,
            Clock& clock, double timeout_s, const std::function<void(const std::string& holder)>& on_wait = {});
  ~StoreLock();
  StoreLock(const StoreLock&) = delete;
  StoreLock& operator=(const StoreLock&) = delete;

  /// False once the lock file was removed or replaced, which ends its protection. Throws io.
  [[nodiscard]] bool is_held() const;
  /// Takes the lock in a directory that was removed and recreated. Throws as the constructor does, without waiting.
  void retake_lock(Clock& clock);
  /// Removes the lock files of older starts. Call it only when this start is the newest: until then they show which
  /// starts are dead. Not for starts that only flush.
  void remove_older();

  /// Removes and releases the lock.
  void release();

 private:
  void take_lock();
  void wait_for_older(Clock& clock, double timeout_s, const std::function<void(const std::string&)>& on_wait);

  std::shared_ptr<fs::FileSystem> file_system_;
  std::string directory_;
  std::uint64_t incarnation_;
  int rank_;
  std::string path_;
  std::vector<std::string> older_locks_;  ///< free ones
  std::unique_ptr<fs::Lock> lock_;
};

}  // namespace kedge::store
