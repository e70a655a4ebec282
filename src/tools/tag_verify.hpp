// Verifies every byte of a committed checkpoint: the manifest and all containers.
#pragma once

#include <cstdint>
#include <functional>

#include "fs/file_system.hpp"
#include "tools/examine.hpp"
#include "tools/tag_location.hpp"

namespace kedge::tools {

/// Calls `report` with a finding for the manifest and for each rank; only with the first if the manifest is unreadable.
/// Never throws Error. A checkpoint that is removed meanwhile or has no manifest is uncommitted, not damaged.
void check_tag(fs::FileSystem& file_system, const TagLocation& place,
               const std::function<void(std::uint64_t)>& on_progress,
               const std::function<void(const Finding&)>& report);

/// The number of bytes check_tag will read; 0 if unknown.
[[nodiscard]] std::uint64_t bytes_of_tag(fs::FileSystem& file_system, const TagLocation& place);

}  // namespace kedge::tools
