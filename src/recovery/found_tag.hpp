// A commit on a prefix as rank 0 found it, and how the other ranks get it.
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
  std::string directory;  ///< its name below the prefix
  std::string problem;    ///< why it cannot be used; empty if its manifest is good

  [[nodiscard]] bool is_usable() const noexcept { return problem.empty(); }
};

/// At most this many tags that cannot be used are listed.
inline constexpr std::size_t kUnusableListedMax = 16;

[[nodiscard]] FoundTag found_tag(const persist::TagEntry& entry, std::string problem);

/// Local. Judges a listed tag by its manifest, which must be trusted: what a list says may come from a catalog. Never
/// throws Error: a failure becomes its `problem`.
[[nodiscard]] FoundTag check_tag_manifest(persist::PrefixStorage& prefix_storage, const persist::TagEntry& listed);

/// From one process of a job to the others, never stored. Throws Error{invalid_argument} if a tag is too long.
[[nodiscard]] std::vector<std::byte> pack(std::span<const FoundTag> tags);
[[nodiscard]] std::vector<FoundTag> unpack(std::span<const std::byte> bytes);

}  // namespace kedge::recovery
