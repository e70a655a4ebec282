// Lists of processor cores, and threads that keep to them.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

namespace kedge {

/// Parses core numbers and ranges of them, separated by commas: "0-3,8". Returns nothing if the text is invalid, and no
/// cores for the empty text. Pure.
[[nodiscard]] std::optional<std::vector<unsigned>> parse_cores(std::string_view text);

/// Binds the calling thread to these cores. Returns false if the system refuses, e.g. because the process may run on
/// none of them.
[[nodiscard]] bool bind_to_cores(const std::vector<unsigned>& cores) noexcept;

}  // namespace kedge
