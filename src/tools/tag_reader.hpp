// Opens the files of a committed tag: its manifest, and the containers that the manifest tells of.
#pragma once

#include <memory>
#include <string>

#include "format/container_reader.hpp"
#include "format/manifest.hpp"
#include "fs/file_system.hpp"
#include "persist/open_container.hpp"
#include "persist/tags.hpp"
#include "tools/tag_location.hpp"

namespace kedge::tools {

struct OpenedManifest {
  persist::TagEntry entry;
  std::unique_ptr<fs::ByteAccess> bytes;
  std::unique_ptr<format::ManifestReader> reader;
};

/// Head and file size are checked. Throws Error{not_found} (no manifest: not committed), corrupt, mismatch (newer
/// format), io.
[[nodiscard]] OpenedManifest open_manifest(fs::FileSystem& file_system, const TagLocation& place);

/// Opens a container as persist::open_container does, which judges it. Throws Error{corrupt} that says missing,
/// truncated, or whose it is instead; mismatch (newer format); io.
[[nodiscard]] persist::OpenedContainer open_container(fs::FileSystem& file_system, const TagLocation& place,
                                                      const format::ManifestHead& head, const format::ShardRow& row,
                                                      LogicalRank rank);

}  // namespace kedge::tools
