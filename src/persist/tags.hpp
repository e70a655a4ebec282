// Lists the commits on a prefix: from the catalogs of its runs, and from the manifests where these do not say.
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
  std::string directory;  ///< its name below the prefix
  CommitHead commit;
  std::string run;  ///< its name
  std::uint64_t total_bytes = 0;
  bool pinned = false;
  bool operator==(const TagEntry&) const = default;
};

/// Head of that commit's manifest; the rest of the head is for encode_manifest.
[[nodiscard]] format::ManifestHead head_of(const TagEntry& entry);

/// A tag directory that is no usable commit.
struct UnusableTag {
  std::string directory;
  bool committed = false;  ///< a manifest is there and cannot be used; false: none is, a flush or removal is in
                           ///< progress or was cut short
  std::string reason;
  ErrorCode code = ErrorCode::not_found;  ///< as read_tag throws it: io says nothing about the commit
};

struct TagList {
  std::vector<TagEntry> entries;  ///< newest first
  std::vector<UnusableTag> unusable;
};

/// Local. Lists the tag directories below `prefix` once. What the catalogs of the runs there tell of them is taken from
/// these, the rest from the manifests. A catalog's word for a directory without a manifest counts for nothing. Throws
/// Error{io | not_found} if the directory cannot be listed; what is wrong with single directories is in the list.
[[nodiscard]] TagList list_tags(fs::FileSystem& file_system, const std::string& prefix);

/// Local. Reads and checks the manifest's head of one tag directory, trusting no catalog. Throws Error{not_found}
/// (no manifest), corrupt, mismatch (newer format), io.
[[nodiscard]] TagEntry read_tag(fs::FileSystem& file_system, const std::string& prefix, const std::string& directory);

/// Local. Refuses what is not trusted: `path` (a file or directory) must belong to whom `trust` permits and not be
/// writable by anybody beyond. Throws Error{io} that says what to do.
void require_trusted(fs::FileSystem& file_system, const std::string& path, Trust trust);

/// Local. Requires that the directory of tag directories is trusted: it may belong to anybody, if those who are not
/// trusted cannot put something else in a tag directory's place. Throws as require_trusted.
void require_trusted_parent(fs::FileSystem& file_system, const std::string& path, Trust trust);

}  // namespace kedge::persist
