// Selections of commits by tag, as programs and people write them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "kedge/error.hpp"
#include "kedge/selection.hpp"

namespace kedge::commits {

/// Whether a text in place of a tag is the reserved word "latest": the newest checkpoint, whatever its tag. Pure.
[[nodiscard]] bool is_latest(std::string_view text) noexcept;

/// Whether a commit is selected by `text`: a tag selects its commits, "latest" all checkpoints. Only their tag selects
/// outputs. Pure.
[[nodiscard]] bool matches_tag(std::string_view text, std::string_view tag, bool is_output) noexcept;

/// Returns the selection with a tag "latest" resolved. Pure.
[[nodiscard]] Selection parse_selection(const Selection& given);

/// Returns the error in a tag, if any. Pure.
[[nodiscard]] std::optional<Failure> check_tag(std::string_view tag);
/// Returns the error in the texts of a selection, if any. Pure.
[[nodiscard]] std::optional<Failure> check_selection(const Selection& selection);

/// Returns a hash of the selection, equal in every process of a job. Pure.
[[nodiscard]] std::uint64_t hash_selection(const Selection& selection, Newer newer) noexcept;

/// Returns "latest", "step-7", "before step-7" or "step-7 of /prefix". Pure.
[[nodiscard]] std::string to_string(const Selection& selection);

}  // namespace kedge::commits
