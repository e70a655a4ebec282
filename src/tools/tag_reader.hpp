// Opens the manifest of a committed tag, and its containers; verifies every byte of them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "format/manifest.hpp"
#include "fs/file_system.hpp"
#include "persist/open_container.hpp"
#include "persist/tags.hpp"
#include "tools/examine.hpp"
#include "tools/tag_location.hpp"

namespace kedge::tools {

struct OpenedManifest {
  persist::TagEntry entry;
  std::unique_ptr<fs::ByteAccess> bytes;
  std::unique_ptr<format::ManifestReader> reader;
};

/// Checks head and file size. Throws Error{not_found} (no manifest: not committed), corrupt, mismatch (newer format),
/// io.
[[nodiscard]] OpenedManifest open_manifest(fs::FileSystem& file_system, const TagLocation& place);

/// Opens and checks a container with persist::open_container. Throws Error{corrupt} if it is missing, truncated, or
/// another rank's or commit's; mismatch (newer format); io.
[[nodiscard]] persist::OpenedContainer open_container(fs::FileSystem& file_system, const TagLocation& place,
                                                      const format::ManifestHead& head, const format::ShardRow& row,
                                                      LogicalRank rank);

/// Calls `report` with a finding for the manifest and for each rank; only with the first if the manifest is unreadable.
/// Never throws Error. A checkpoint that is removed meanwhile or has no manifest is uncommitted, not damaged.
void check_tag(fs::FileSystem& file_system, const TagLocation& place,
               const std::function<void(std::uint64_t)>& on_progress,
               const std::function<void(const Finding&)>& report);

/// The number of bytes check_tag will read; 0 if unknown.
[[nodiscard]] std::uint64_t bytes_of_tag(fs::FileSystem& file_system, const TagLocation& place);

}  // namespace kedge::tools
