// Which commits a program or a person means: what their texts mean, and whether they can mean anything.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "kedge/error.hpp"
#include "kedge/selection.hpp"

namespace kedge::commits {

/// Pure. Whether a text that stands for a tag is the reserved word "latest": the newest checkpoint, whatever its tag.
[[nodiscard]] bool is_latest(std::string_view text) noexcept;

/// Pure. Whether a commit is among those that a text names: all of one tag, or with the word "latest" all checkpoints.
/// Outputs are only meant by their tags.
[[nodiscard]] bool is_named(std::string_view text, std::string_view tag, bool is_output) noexcept;

/// Pure. The Selection that is meant: a tag may be the word "latest".
[[nodiscard]] Selection parsed(const Selection& given);

/// Pure. Error in a tag, if any.
[[nodiscard]] std::optional<Failure> check_tag(std::string_view tag);
/// Pure. Error in the texts of a selection, if any.
[[nodiscard]] std::optional<Failure> check(const Selection& selection);

/// Pure. The same in every process of a job.
[[nodiscard]] std::uint64_t hash_of(const Selection& selection, Newer newer) noexcept;

/// Pure. "latest", "step-7", "before step-7", "step-7 of /prefix".
[[nodiscard]] std::string to_string(const Selection& selection);

}  // namespace kedge::commits
