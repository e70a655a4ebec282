#include "store/store_removal.hpp"

#include <unistd.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "base/attempt.hpp"
#include "base/text.hpp"
#include "commits/head_check.hpp"
#include "fs/tree.hpp"
#include "store/file_name.hpp"
#include "store/job_record.hpp"
#include "store/store_lock.hpp"

namespace kedge::store {
namespace {

using Kind = fs::FileStatus::Kind;

/// The lock that the last possible incarnation would hold: it refuses jobs that start meanwhile, and fails if one is
/// running.
const std::string& own_lock() {
  static const std::string name = compose("{}{}.drop", kLockPrefix, commits::kIncarnationMax);
  return name;
}

std::uint64_t bytes_below(fs::FileSystem& file_system, const std::string& directory) {
  std::uint64_t bytes = 0;
  for (const fs::TreeFile& file : fs::files_below(file_system, directory)) {
    if (file.status.kind == Kind::file) bytes += file.status.size_bytes;
  }
  return bytes;
}

[[noreturn]] void throw_in_use(const std::string& used_by, const std::string& directory) {
  refuse(ErrorCode::busy, compose("in use by a job ({}); end that job first", used_by), directory);
}

void remove_files(fs::FileSystem& file_system, const std::string& directory, const StoreContent& content) {
  const auto order = [](const std::string& name) {
    return parse_file_name(name) ? 0 : name == kRunRecord || name.starts_with(kJobPrefix) ? 2 : 1;
  };
  for (const int turn : {0, 1, 2}) {
    for (const std::string& name : content.files) {
      if (name != own_lock() && order(name) == turn) fs::remove_tree(file_system, fs::join(directory, name));
    }
  }
}

/// Frees space for the lock if not even an empty file can be created, by removing a file that no start needs, or else a
/// container. No job can start meanwhile, since it could not create its lock either. False if there is no such file.
bool free_some_space(fs::FileSystem& file_system, const std::string& directory) {
  const StoreContent content = read_store_content(file_system, directory);
  if (!content.used_by.empty()) throw_in_use(content.used_by, directory);
  const auto worth = [](const std::string& name) {
    const auto is = [&](std::string_view kind) { return name.starts_with(kind); };
    return is(kLockPrefix) || is(kReservationPrefix) || is(kNoncePrefix) ? 0 : parse_file_name(name) ? 1 : 2;
  };
  const auto least = std::ranges::min_element(content.files, {}, worth);
  if (least == content.files.end()) return false;
  (void)fs::remove_tree(file_system, fs::join(directory, *least));
  return true;
}

/// Null if another process holds it. Removing a store must not need space.
std::unique_ptr<fs::Lock> take_own_lock(fs::FileSystem& file_system, const std::string& directory) {
  const std::string holder = compose("kedge drop, process {}", ::getpid());
  while (true) {
    std::unique_ptr<fs::Lock> lock;
    const auto failure = attempt([&] { lock = file_system.try_lock(fs::join(directory, own_lock()), holder); });
    if (!failure) return lock;
    if (failure->code != ErrorCode::no_space || !free_some_space(file_system, directory)) throw Error(*failure);
  }
}

}  // namespace

StoreContent read_store_content(fs::FileSystem& file_system, const std::string& directory) {
  StoreContent found;
  found.record = read_store_record(file_system, directory);
  for (const std::string& name : file_system.list(directory)) {
    const std::string file = fs::join(directory, name);
    const auto here = file_system.status(file);
    if (!is_store_file(name) || !here) continue;
    if (here->kind == Kind::directory && name.starts_with(kRoutedPrefix)) {
      found.files.push_back(name);
      (void)attempt([&] { found.bytes += bytes_below(file_system, file); });  // a running job may remove them
      continue;
    }
    if (here->kind != Kind::file) continue;
    found.files.push_back(name);
    found.bytes += here->size_bytes;
    if (!name.starts_with(kLockPrefix) || file_system.holds_lock(file)) continue;
    if (auto holder = lock_holder(file_system, file)) found.used_by = std::move(*holder);
    else if (const auto start = incarnation_of_lock(name)) found.dead_starts.push_back(*start);
  }
  found.job = recorded_job(found.files);
  return found;
}

std::size_t remove_store(fs::FileSystem& file_system, const std::string& directory) {
  const std::string path = fs::join(directory, own_lock());
  {
    const auto lock = take_own_lock(file_system, directory);
    if (!lock) throw_in_use(lock_holder(file_system, path).value_or("another kedge drop"), directory);
    StoreContent content;
    const auto failure = attempt([&] {
      content = read_store_content(file_system, directory);
      if (content.used_by.empty()) remove_files(file_system, directory, content);
    });
    file_system.remove(path);
    if (failure) throw Error(*failure);
    if (!content.used_by.empty()) throw_in_use(content.used_by, directory);
  }
  const std::size_t left = file_system.list(directory).size();
  if (left == 0) file_system.remove(directory);
  return left;
}

}  // namespace kedge::store
