// Checks the numbers and names of a commit's head from a file before they are used.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "kedge/types.hpp"

namespace kedge::commits {

inline constexpr std::size_t kTagBytesMax = 128;
/// More than any run reaches, and small enough that counting on cannot overflow.
inline constexpr std::uint64_t kGenerationMax = std::uint64_t{1} << 61U;
inline constexpr std::uint64_t kIncarnationMax = std::uint64_t{1} << 61U;
/// Generations reserved for each start.
inline constexpr std::uint64_t kGenerationsPerIncarnation = 1'000'000;
/// Maximum number of ranks in MPI.
inline constexpr std::uint32_t kWorldSizeMax = std::numeric_limits<std::int32_t>::max();

/// Whether the text has 1 to 128 characters of A-Z a-z 0-9 . _ -, no leading dot, and is not the reserved word. Pure.
[[nodiscard]] bool is_tag(std::string_view text) noexcept;

/// Returns why no commit can have this head; nothing if it is valid. Pure.
[[nodiscard]] std::optional<std::string> check_head(const CommitHead& head);

}  // namespace kedge::commits
