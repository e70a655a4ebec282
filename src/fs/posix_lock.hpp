// Locks between processes by fcntl record locks.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "fs/file_system.hpp"

namespace kedge::fs {

/// The locks of this process. Record locks do not exclude their own process, and closing any descriptor of the file
/// drops them. All tables of a process therefore share the list of held files, and open no second descriptor of one.
/// Thread-safe.
class LockTable {
 public:
  LockTable();
  [[nodiscard]] std::unique_ptr<Lock> try_lock(const std::string& path, std::string_view holder);
  [[nodiscard]] std::optional<std::string> lock_holder(const std::string& path);
  [[nodiscard]] bool holds_lock(const std::string& path);

  class HeldLocks;  // shared with the locks, which may outlive the table

 private:
  std::shared_ptr<HeldLocks> held_;
};

}  // namespace kedge::fs
