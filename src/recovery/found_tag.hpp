// A commit on the prefix as rank 0 found it, and its message to the other ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "kedge/types.hpp"
#include "persist/prefix_storage.hpp"

namespace kedge::recovery {

struct FoundTag {
  CommitHead commit;
  std::uint64_t total_bytes = 0;
  std::string directory;  ///< name below the prefix
  std::string problem;    ///< why it cannot be used; empty if the manifest is valid

  [[nodiscard]] bool is_usable() const noexcept { return problem.empty(); }
};

/// Maximum number of unusable tags that are listed.
inline constexpr std::size_t kUnusableListedMax = 16;

[[nodiscard]] FoundTag found_tag(const persist::TagEntry& entry, std::string problem);

/// Local. Checks a listed tag by its manifest, because the list may come from a catalog. Never throws Error: a failure
/// becomes its `problem`.
[[nodiscard]] FoundTag check_tag_manifest(persist::PrefixReader& prefix_storage, const persist::TagEntry& listed);

/// A message between processes of one job, never stored. Throws Error{invalid_argument} if a tag is too long.
[[nodiscard]] std::vector<std::byte> pack(std::span<const FoundTag> tags);
[[nodiscard]] std::vector<FoundTag> unpack(std::span<const std::byte> bytes);

}  // namespace kedge::recovery
