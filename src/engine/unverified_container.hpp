// An open checkpoint whose container is verified as it is loaded.
#pragma once

#include <cstdint>
#include <mutex>
#include <set>
#include <string>

#include "format/container_reader.hpp"
#include "kedge/error.hpp"
#include "recovery/recovery.hpp"

namespace kedge::engine {

/// Until all ranks have found theirs intact, nothing may be given up for it: what it supersedes stays in the stores.
/// Loads come from several threads; the rest is for the thread that closes.
class UnverifiedContainer {
 public:
  explicit UnverifiedContainer(recovery::Opened opened) : opened_(std::move(opened)) {}

  [[nodiscard]] const recovery::Opened& opened() const noexcept { return opened_; }
  /// All of this region was read, and is what was saved.
  void mark_read(const format::StoredRegion& region);
  /// Bytes of regions that nobody has loaded.
  [[nodiscard]] std::uint64_t unread_bytes(const format::ContainerReader& container) const;
  /// Reads what nobody has loaded. Throws corrupt if it is damaged, io if it cannot be read.
  void verify_unread(const format::ContainerReader& container, const std::string& path) const;

 private:
  recovery::Opened opened_;
  mutable std::mutex mutex_;
  std::set<std::string> read_;  ///< regions, by their names
};

}  // namespace kedge::engine
