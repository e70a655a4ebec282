// One engine start at a time works on a store: every process holds a lock under its incarnation.
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

/// Local. The text of who holds this lock of a store; nothing if nobody does. Throws Error{io}, which says what to do,
/// if it cannot be opened: then somebody may.
[[nodiscard]] std::optional<std::string> lock_holder(fs::FileSystem& file_system, const std::string& path);

/// Pure. The start whose lock a file of this name is; nothing for other names.
[[nodiscard]] std::optional<std::uint64_t> incarnation_of_lock(std::string_view name);

/// This process's lock on the run's directory, released when destroyed or when the process dies.
class StoreLock {
 public:
  /// Takes `<directory>/lock.<incarnation>.<rank>`, then waits up to `timeout_s` until no process of an older
  /// incarnation holds one. After some seconds it calls `waits` with the holder's name, once. Throws Error{busy} that
  /// names the holder, at once if a newer incarnation is there, or an older engine of this process and rank; io if a
  /// lock cannot be opened.
  StoreLock(std::shared_ptr<fs::FileSystem> file_system, std::string directory, std::uint64_t incarnation, int rank,
            Clock& clock, double timeout_s, const std::function<void(const std::string& holder)>& waits = {});
  ~StoreLock();
  StoreLock(const StoreLock&) = delete;
  StoreLock& operator=(const StoreLock&) = delete;

  /// False once somebody removed or replaced the lock file: it guards nothing then. Throws io.
  [[nodiscard]] bool is_held() const;
  /// Takes it anew, in a directory that was recreated. Throws as the constructor does, without waiting for anybody.
  void take_again(Clock& clock);
  /// Removes the lock files that older starts left. Only once this start is the newest that has begun: until then they
  /// show which of those are dead. Not for a start that only flushes.
  void remove_older();

  /// Removes the lock file and releases it: an orderly end.
  void release();

 private:
  void take();
  void wait_for_older(Clock& clock, double timeout_s, const std::function<void(const std::string&)>& waits);

  std::shared_ptr<fs::FileSystem> file_system_;
  std::string directory_;
  std::uint64_t incarnation_;
  int rank_;
  std::string path_;
  std::vector<std::string> older_;  ///< which nobody holds any more
  std::unique_ptr<fs::Lock> lock_;
};

}  // namespace kedge::store
