// Locks between processes by fcntl record locks.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "fs/file_system.hpp"

namespace kedge::fs {

/// The locks of one file system object. A record lock is dropped when its process closes any descriptor of
/// the file, and does not conflict with its own process: so the table remembers which files it holds and opens
/// no second descriptor of them. One process should ask for locks through one table. Thread-safe.
class LockTable {
 public:
  LockTable();
  [[nodiscard]] std::unique_ptr<Lock> try_lock(const std::string& path, std::string_view holder);
  [[nodiscard]] std::optional<std::string> holder(const std::string& path);

  class Held;  // shared with the locks, which may outlive the table

 private:
  std::shared_ptr<Held> held_;
};

}  // namespace kedge::fs
