// Storage that outlives the allocation, as the engine sees it: commits are published there whole, or not at all.
#pragma once

#include <string>

#include "kedge/types.hpp"
#include "persist/open_container.hpp"
#include "persist/tag_entry.hpp"

namespace kedge::persist {

/// A place where commits lie side by side, each under a name (TagEntry::directory) with the containers of its ranks and
/// a manifest. The commit exists exactly as long as its manifest does. Nothing here is about how: a filesystem renames
/// and syncs, an object store puts and deletes. All calls are local, and throw Error{io} when the place cannot be
/// reached.
class Tier {
 public:
  Tier() = default;
  Tier(const Tier&) = delete;
  Tier& operator=(const Tier&) = delete;
  virtual ~Tier() = default;

  // Looking: any rank.

  /// What it is called in messages.
  [[nodiscard]] virtual const std::string& where() const noexcept = 0;
  /// Newest first, and what is no usable commit. What is known of a commit may come from a cache: read() does not
  /// believe that. Throws also not_found.
  [[nodiscard]] virtual TagList list() = 0;
  /// The head of the manifest of that name, read and checked. Throws also not_found (no manifest), corrupt, mismatch
  /// (newer format).
  [[nodiscard]] virtual TagEntry read(const std::string& name) = 0;
  /// True if a manifest is seen there from this rank; it was not read.
  [[nodiscard]] virtual bool is_published(const std::string& name) = 0;
  /// True if this user put it there: whatever says that it belongs to this user's run and is not, does not.
  [[nodiscard]] virtual bool is_own(const TagEntry& entry) = 0;
  /// Throws io that says what to do if persistent.trust does not permit to believe what lies there.
  virtual void require_trusted(const TagEntry& entry) = 0;
  /// The container of a rank of just this commit. Throws as open_container, and io if it is not trusted.
  [[nodiscard]] virtual OpenedContainer open(const std::string& name, const CommitHead& commit,
                                             LogicalRank logical_rank) = 0;
};

}  // namespace kedge::persist
