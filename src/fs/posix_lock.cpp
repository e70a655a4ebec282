#include "fs/posix_lock.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <map>
#include <mutex>
#include <tuple>

#include "base/file_size_signal.hpp"
#include "base/text.hpp"
#include "fs/posix_file.hpp"
#include "fs/system_error.hpp"
#include "fs/transfer.hpp"

namespace kedge::fs {

/// Keyed by device and inode, because a file may have several paths, and by process, because a forked child copies this
/// table but holds none of the locks.
class LockTable::HeldLocks {
 public:
  using Key = std::tuple<pid_t, dev_t, ino_t>;
  std::mutex mutex;
  std::map<Key, std::string> texts;  ///< of held locks
};

namespace {

LockTable::HeldLocks::Key key_of(const struct stat& info) { return {::getpid(), info.st_dev, info.st_ino}; }

class PosixLock final : public Lock {
 public:
  PosixLock(std::shared_ptr<LockTable::HeldLocks> held, LockTable::HeldLocks::Key key, Descriptor descriptor)
      : held_(std::move(held)), key_(key), descriptor_(std::move(descriptor)) {}
  ~PosixLock() override {
    const std::lock_guard guard(held_->mutex);
    descriptor_ = Descriptor();  // the swapped-out descriptor is closed at the end of this statement
    held_->texts.erase(key_);
  }

 private:
  std::shared_ptr<LockTable::HeldLocks> held_;
  LockTable::HeldLocks::Key key_;
  Descriptor descriptor_;
};

struct flock whole_file() noexcept {
  struct flock range {};
  range.l_type = F_WRLCK;
  range.l_whence = SEEK_SET;
  return range;
}

std::optional<struct stat> stat_of_name(const std::string& path) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) == 0) return info;
  if (errno == ENOENT) return std::nullopt;
  throw_system_error("check the lock file's status", path, errno);
}

Descriptor open_lock_file(const std::string& path, int flags) {
  constexpr int kAlways = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
  return Descriptor(retry_interrupted([&] { return ::open(path.c_str(), flags | kAlways, 0600); }));
}

void require_regular(const struct stat& info, const std::string& path) {
  if (S_ISREG(info.st_mode)) return;
  throw Error(Failure{ErrorCode::io, "the lock is not a regular file; remove it", -1, path, 0});
}

/// Best effort: without the text, on a full filesystem, the lock still holds and its holder is reported as a process
/// id.
void write_record(const Descriptor& descriptor, const std::string& path, std::string_view text) {
  const ScopedFileSizeSignalBlock no_signal;
  const auto empty = [&] { return retry_interrupted([&] { return ::ftruncate(descriptor.get(), 0); }); };
  if (empty() != 0) throw_system_error("truncate the lock file", path, errno);
  const auto done = transfer_all(text.size(), [&](std::size_t at, std::size_t left) {
    return ::pwrite(descriptor.get(), text.data() + at, left, static_cast<off_t>(at));
  });
  if (done.error != 0) (void)empty();  // no text is better than half of it
}

std::string read_record(const Descriptor& descriptor, const std::string& path) {
  std::array<char, 4096> buffer{};
  const auto done = transfer_all(buffer.size(), [&](std::size_t at, std::size_t left) {
    return ::pread(descriptor.get(), buffer.data() + at, left, static_cast<off_t>(at));
  });
  if (done.error != 0) throw_system_error("read the lock file", path, done.error);
  return {buffer.data(), done.bytes};
}

}  // namespace

namespace {

/// Record locks belong to the process, so this state does too: two engines in one process must see each other's locks.
const std::shared_ptr<LockTable::HeldLocks>& held_by_this_process() {
  static const auto held = std::make_shared<LockTable::HeldLocks>();
  return held;
}

}  // namespace

LockTable::LockTable() : held_(held_by_this_process()) {}

std::unique_ptr<Lock> LockTable::try_lock(const std::string& path, std::string_view holder) {
  const std::lock_guard guard(held_->mutex);
  while (true) {
    const auto before = stat_of_name(path);
    if (before && held_->texts.contains(key_of(*before))) return nullptr;
    Descriptor descriptor = open_lock_file(path, O_RDWR | O_CREAT);
    if (!descriptor.is_valid()) throw_system_error("open the lock file", path, errno);
    const struct stat info = stat_descriptor(descriptor, path);
    require_regular(info, path);
    struct flock range = whole_file();
    if (retry_interrupted([&] { return ::fcntl(descriptor.get(), F_SETLK, &range); }) != 0) {
      if (errno == EACCES || errno == EAGAIN) return nullptr;
      throw_system_error("lock the file", path, errno);
    }
    // If the name was removed or replaced between open and lock, this lock protects nothing.
    const auto after = stat_of_name(path);
    if (!after || key_of(*after) != key_of(info)) continue;
    if (info.st_nlink > 1) {  // a hard-linked backup must not be overwritten
      if (::unlink(path.c_str()) != 0) throw_system_error("replace the lock file", path, errno);
      continue;
    }
    write_record(descriptor, path, holder);
    held_->texts.emplace(key_of(info), holder);
    return std::make_unique<PosixLock>(held_, key_of(info), std::move(descriptor));
  }
}

bool LockTable::holds_lock(const std::string& path) {
  const std::lock_guard guard(held_->mutex);
  const auto named = stat_of_name(path);
  return named && held_->texts.contains(key_of(*named));
}

std::optional<std::string> LockTable::lock_holder(const std::string& path) {
  const std::lock_guard guard(held_->mutex);
  const auto named = stat_of_name(path);
  if (!named) return std::nullopt;
  if (const auto own = held_->texts.find(key_of(*named)); own != held_->texts.end()) return own->second;
  const Descriptor descriptor = open_lock_file(path, O_RDONLY);
  if (!descriptor.is_valid()) {
    if (errno == ENOENT) return std::nullopt;
    throw_system_error("open the lock file", path, errno);
  }
  require_regular(stat_descriptor(descriptor, path), path);
  struct flock range = whole_file();
  if (retry_interrupted([&] { return ::fcntl(descriptor.get(), F_GETLK, &range); }) != 0) {
    throw_system_error("query the lock's holder", path, errno);
  }
  if (range.l_type == F_UNLCK) return std::nullopt;
  auto text = read_record(descriptor, path);
  return text.empty() ? compose("process {}", range.l_pid) : text;  // locked, but the text is not written yet
}

}  // namespace kedge::fs
