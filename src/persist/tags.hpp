// Lists the commits on a prefix: from the catalogs of its runs, and otherwise from the manifests.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "format/manifest.hpp"
#include "fs/file_system.hpp"
#include "kedge/error.hpp"
#include "kedge/options.hpp"
#include "kedge/types.hpp"

namespace kedge::persist {

/// One persistent commit, as its manifest's head says.
struct TagEntry {
  std::string directory;  ///< name below the prefix
  CommitHead commit;
  std::string run;  ///< name of the run
  std::uint64_t total_bytes = 0;
  bool pinned = false;
  bool operator==(const TagEntry&) const = default;
};

/// Returns the head of the commit's manifest; encode_manifest sets its other fields.
[[nodiscard]] format::ManifestHead manifest_head_of(const TagEntry& entry);

/// A tag directory that is not a usable commit.
struct UnusableTag {
  std::string directory;
  /// A manifest is there and cannot be used; false: a flush or removal is in progress or was cut short.
  bool has_manifest = false;
  std::string reason;
  ErrorCode code = ErrorCode::not_found;  ///< code that read_tag() throws: io says nothing about the commit
};

struct TagList {
  std::vector<TagEntry> entries;  ///< newest first
  std::vector<UnusableTag> unusable_tags;
};

/// Lists the tag directories below `prefix` once: those in the catalogs of its runs from there, the others from their
/// manifests. Ignores catalog entries of directories without a manifest. Throws Error{io | not_found} if the directory
/// cannot be listed; problems with single directories are in the result. Local.
[[nodiscard]] TagList list_tags(fs::FileSystem& file_system, const std::string& prefix);

/// Local. Reads and checks the manifest's head of one tag directory, trusting no catalog. Throws Error{not_found}
/// (no manifest), corrupt, mismatch (newer format), io.
[[nodiscard]] TagEntry read_tag(fs::FileSystem& file_system, const std::string& prefix, const std::string& directory);

/// Throws Error{io} with the remedy unless `path` (a file or directory) belongs to a user that `trust` permits, and no
/// other user can write it. Local.
void require_trusted(fs::FileSystem& file_system, const std::string& path, Trust trust);

/// Throws as require_trusted() does unless the directory of tag directories is trusted: it may belong to anyone, if
/// users who are not trusted cannot replace a tag directory. Local.
void require_trusted_parent(fs::FileSystem& file_system, const std::string& path, Trust trust);

}  // namespace kedge::persist
