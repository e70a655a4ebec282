// What is committed on a prefix: read from the catalogs of its runs, and from the masters where these do not say.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "format/master.hpp"
#include "fs/file_system.hpp"
#include "kedge/engine.hpp"
#include "kedge/error.hpp"
#include "kedge/options.hpp"
#include "kedge/types.hpp"

namespace kedge::persist {

/// One persistent commit, as its master's head says.
struct TagEntry {
  std::string folder;  ///< its name below the prefix
  Tag tag;
  std::uint64_t generation = 0;
  Id128 commit_id;
  Id128 parent_commit_id;
  Id128 run_id;
  std::string run;
  std::uint64_t incarnation = 0;
  std::uint32_t world_size = 0;
  std::int64_t time_ns = 0;
  std::uint64_t total_bytes = 0;
  bool pinned = false;
  bool operator==(const TagEntry&) const = default;
};

/// What the master of that commit says; the rest of the head is for encode_master.
[[nodiscard]] format::MasterHead head_of(const TagEntry& entry);

/// A tag folder that is no usable commit.
struct Unusable {
  std::string folder;
  bool committed = false;  ///< it has a master, which cannot be used; false: no master, a flush or removal is under way
                           ///< or was cut short
  std::string reason;
  ErrorCode code = ErrorCode::not_found;  ///< as read_tag throws it: io says nothing about the commit
};

struct TagList {
  std::vector<TagEntry> entries;  ///< newest first, by generation, then commit id
  std::vector<Unusable> unusable;
};

/// Local. Lists the tag folders below `prefix` once. What the catalogs of the runs there tell of them is taken from
/// these, the rest from the masters. A catalog's word for a folder without a master counts for nothing. Throws Error{io
/// | not_found} if the folder cannot be listed; what is wrong with single folders is in the list.
[[nodiscard]] TagList list_tags(fs::FileSystem& file_system, const std::string& prefix);

/// Local. Reads and checks the master's head of one tag folder, not believing any catalog. Throws Error{not_found}
/// (no master), corrupt, mismatch (newer format), io.
[[nodiscard]] TagEntry read_tag(fs::FileSystem& file_system, const std::string& prefix, const std::string& folder);

/// Local. Refuses what is not trusted: `path` (a file or folder) must belong to whom `trust` permits and not be
/// writable by anybody beyond. Throws Error{io} that says what to do.
void require_trusted(fs::FileSystem& file_system, const std::string& path, Trust trust);

/// Local. Likewise for the folder that tag folders lie in: it may belong to anybody, if those who are not trusted
/// cannot put something else in a tag folder's place.
void require_trusted_parent(fs::FileSystem& file_system, const std::string& path, Trust trust);

}  // namespace kedge::persist
