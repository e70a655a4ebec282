// What is committed on a prefix: read from the catalogs of its runs, and from the manifests where these do not say.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "format/manifest.hpp"
#include "fs/file_system.hpp"
#include "kedge/engine.hpp"
#include "kedge/error.hpp"
#include "kedge/options.hpp"
#include "kedge/types.hpp"

namespace kedge::persist {

/// One persistent commit, as its manifest's head says.
struct TagEntry {
  std::string directory;  ///< its name below the prefix
  CommitHead commit;
  std::string run;  ///< its name
  std::uint64_t total_bytes = 0;
  bool pinned = false;
  bool operator==(const TagEntry&) const = default;
};

/// What the manifest of that commit says; the rest of the head is for encode_manifest.
[[nodiscard]] format::ManifestHead head_of(const TagEntry& entry);

/// A tag directory that is no usable commit.
struct Unusable {
  std::string directory;
  bool committed = false;  ///< it has a manifest, which cannot be used; false: no manifest, a flush or removal is under
                           ///< way or was cut short
  std::string reason;
  ErrorCode code = ErrorCode::not_found;  ///< as read_tag throws it: io says nothing about the commit
};

struct TagList {
  std::vector<TagEntry> entries;  ///< newest first
  std::vector<Unusable> unusable;
};

/// Local. Lists the tag directories below `prefix` once. What the catalogs of the runs there tell of them is taken from
/// these, the rest from the manifests. A catalog's word for a directory without a manifest counts for nothing. Throws
/// Error{io | not_found} if the directory cannot be listed; what is wrong with single directories is in the list.
[[nodiscard]] TagList list_tags(fs::FileSystem& file_system, const std::string& prefix);

/// Local. Reads and checks the manifest's head of one tag directory, not believing any catalog. Throws Error{not_found}
/// (no manifest), corrupt, mismatch (newer format), io.
[[nodiscard]] TagEntry read_tag(fs::FileSystem& file_system, const std::string& prefix, const std::string& directory);

/// Local. Refuses what is not trusted: `path` (a file or directory) must belong to whom `trust` permits and not be
/// writable by anybody beyond. Throws Error{io} that says what to do.
void require_trusted(fs::FileSystem& file_system, const std::string& path, Trust trust);

/// Local. Likewise for the directory that tag directories lie in: it may belong to anybody, if those who are not
/// trusted cannot put something else in a tag directory's place.
void require_trusted_parent(fs::FileSystem& file_system, const std::string& path, Trust trust);

}  // namespace kedge::persist
