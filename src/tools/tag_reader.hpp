// Opens the files of a committed tag: its master, and the containers that the master tells of.
#pragma once

#include <memory>
#include <string>

#include "format/container_reader.hpp"
#include "format/master.hpp"
#include "fs/file_system.hpp"
#include "persist/tags.hpp"
#include "tools/place.hpp"

namespace kedge::tools {

struct OpenedMaster {
  persist::TagEntry entry;
  std::unique_ptr<fs::File> file;
  std::unique_ptr<format::MasterReader> reader;
};

/// Head and file size are checked. Throws Error{not_found} (no master: not committed), corrupt, mismatch (newer
/// format), io.
[[nodiscard]] OpenedMaster open_master(fs::FileSystem& file_system, const TagPlace& place);

struct OpenedContainer {
  std::unique_ptr<fs::File> file;
  std::unique_ptr<format::ContainerReader> reader;
};

/// The container of `rank` as `row`, the master's, describes it: found through no link, of the right size, and by its
/// superblock and index the one that was committed. Throws Error{corrupt} that says missing, truncated, or whose it is
/// instead; io.
[[nodiscard]] OpenedContainer open_container(fs::FileSystem& file_system, const TagPlace& place,
                                             const format::MasterHead& head, const format::ShardRow& row,
                                             LogicalRank rank);

}  // namespace kedge::tools
