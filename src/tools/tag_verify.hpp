// Every byte of a committed checkpoint: its manifest and the containers of all ranks.
#pragma once

#include <cstdint>
#include <functional>

#include "fs/file_system.hpp"
#include "tools/examine.hpp"
#include "tools/tag_location.hpp"

namespace kedge::tools {

/// Calls `report` with a finding for the manifest and then one per rank; only the first if the manifest cannot tell of
/// the others. Never throws Error. A checkpoint that is removed meanwhile, or has no manifest, is uncommitted, not
/// damaged.
void check_tag(fs::FileSystem& file_system, const TagLocation& place,
               const std::function<void(std::uint64_t)>& on_progress,
               const std::function<void(const Finding&)>& report);

/// How much check_tag will read, for its progress; 0 if that cannot be told.
[[nodiscard]] std::uint64_t bytes_of_tag(fs::FileSystem& file_system, const TagLocation& place);

}  // namespace kedge::tools
