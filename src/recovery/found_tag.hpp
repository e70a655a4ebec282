// A commit on a prefix as rank 0 found it, and how the other ranks get it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kedge/types.hpp"
#include "persist/tier.hpp"

namespace kedge::recovery {

struct FoundTag {
  CommitHead commit;
  std::uint64_t total_bytes = 0;
  std::string directory;  ///< its name below the prefix
  std::string problem;    ///< why it cannot be used; empty if its manifest is good

  [[nodiscard]] bool is_usable() const noexcept { return problem.empty(); }
};

/// Of those that cannot be used so many are listed.
inline constexpr std::size_t kUnusableListedMax = 16;

[[nodiscard]] FoundTag found_tag(const persist::TagEntry& entry, std::string problem);

/// Local. By its manifest, which is read and must be trusted: what a list says of a commit may come from a catalog.
/// Never throws Error: what is wrong is its problem.
[[nodiscard]] FoundTag judge_tag(persist::Tier& tier, const persist::TagEntry& listed);

/// From one process of a job to the others, never stored. Throws Error{invalid_argument} if a tag is too long.
[[nodiscard]] std::vector<std::byte> pack(std::span<const FoundTag> tags);
[[nodiscard]] std::vector<FoundTag> unpack(std::span<const std::byte> bytes);

}  // namespace kedge::recovery
