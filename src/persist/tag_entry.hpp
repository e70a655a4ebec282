// Entries of committed tags.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "format/manifest.hpp"
#include "kedge/error.hpp"
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

}  // namespace kedge::persist
