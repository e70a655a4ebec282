// An open checkpoint whose containers are verified as they are loaded.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <vector>

#include "kedge/error.hpp"
#include "recovery/holding.hpp"
#include "recovery/recovery.hpp"

namespace kedge::engine {

/// Until all ranks have found theirs intact, nothing may be given up for it: what it supersedes stays in the stores.
/// What lies on the prefix is verified by whoever reads it, and does not count. Loads come from several threads; the
/// rest is for the thread that closes.
class UnverifiedContainers {
 public:
  explicit UnverifiedContainers(recovery::Opened opened) : opened_(std::move(opened)) {}

  [[nodiscard]] const recovery::Opened& opened() const noexcept { return opened_; }
  /// All of this region, or this block of it, was read, and is what was saved.
  void mark_read(const format::StoredRegion& region);
  void mark_read(const format::StoredRegion& region, std::uint64_t block);
  /// Bytes of regions that nobody has loaded completely.
  [[nodiscard]] std::uint64_t unread_bytes(std::span<const recovery::Holding> holdings) const;
  /// Reads what nobody has loaded, once. Throws corrupt if it is damaged, io if it cannot be read.
  void verify_unread(std::span<const recovery::Holding> holdings);

 private:
  [[nodiscard]] bool is_read(const format::StoredRegion& region) const;

  recovery::Opened opened_;
  mutable std::mutex mutex_;
  /// Which blocks of a region were read. Regions do not move while their container is open.
  std::map<const format::StoredRegion*, std::vector<bool>> read_;
  bool is_rest_read_ = false;
};

}  // namespace kedge::engine
