// "Did you mean ...?" for misspelt names of options and commands.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kedge {

/// Returns the number of letters to insert, remove or replace to get from `a` to `b` (Levenshtein distance).
[[nodiscard]] std::size_t edit_distance(std::string_view a, std::string_view b);

/// Returns the known name nearest to `word`, the first of equals; nothing if none is near enough.
[[nodiscard]] std::optional<std::string> nearest_name(std::string_view word, const std::vector<std::string>& known);

}  // namespace kedge
