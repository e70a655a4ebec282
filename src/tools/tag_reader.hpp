// Opens the files of a committed tag: its manifest, and the containers that the manifest tells of.
#pragma once

#include <memory>
#include <string>

#include "format/container_reader.hpp"
#include "format/manifest.hpp"
#include "fs/file_system.hpp"
#include "persist/tags.hpp"
#include "tools/place.hpp"

namespace kedge::tools {

struct OpenedManifest {
  persist::TagEntry entry;
  std::unique_ptr<fs::File> file;
  std::unique_ptr<format::ManifestReader> reader;
};

/// Head and file size are checked. Throws Error{not_found} (no manifest: not committed), corrupt, mismatch (newer
/// format), io.
[[nodiscard]] OpenedManifest open_manifest(fs::FileSystem& file_system, const TagPlace& place);

struct OpenedContainer {
  std::unique_ptr<fs::File> file;
  std::unique_ptr<format::ContainerReader> reader;
};

/// The container of `rank` as `row`, the manifest's, describes it: found through no link, of the right size, and by its
/// superblock and index the one that was committed. Throws Error{corrupt} that says missing, truncated, or whose it is
/// instead; io.
[[nodiscard]] OpenedContainer open_container(fs::FileSystem& file_system, const TagPlace& place,
                                             const format::ManifestHead& head, const format::ShardRow& row,
                                             LogicalRank rank);

}  // namespace kedge::tools
