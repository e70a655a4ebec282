// Checks of a commit's head: numbers and names from files are checked before they are used.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "kedge/types.hpp"

namespace kedge::commits {

inline constexpr std::size_t kTagBytesMax = 128;
/// Far beyond what any run reaches, and far enough from the end that what is counted on from it does not wrap around.
inline constexpr std::uint64_t kGenerationMax = std::uint64_t{1} << 61U;
inline constexpr std::uint64_t kIncarnationMax = std::uint64_t{1} << 61U;
/// Number of generations that each start has for itself.
inline constexpr std::uint64_t kGenerationsPerIncarnation = 1'000'000;
/// Largest number of ranks, as MPI counts them.
inline constexpr std::uint32_t kWorldSizeMax = std::numeric_limits<std::int32_t>::max();

/// Pure. 1 to 128 of A-Z a-z 0-9 . _ -, not starting with a dot, and not the reserved word.
[[nodiscard]] bool is_tag(std::string_view text) noexcept;

/// Pure. Why no commit can have such a head, in words; nothing if it is possible.
[[nodiscard]] std::optional<std::string> check_head(const CommitHead& head);

}  // namespace kedge::commits
