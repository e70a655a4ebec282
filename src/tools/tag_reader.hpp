// Opens the manifest of a committed tag, and its containers.
#pragma once

#include <memory>

#include "format/manifest.hpp"
#include "fs/file_system.hpp"
#include "persist/open_container.hpp"
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

}  // namespace kedge::tools
