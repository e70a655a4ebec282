// Lists of processor cores, and threads that keep to them.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

namespace kedge {

/// Pure. Numbers from 0 and ranges of them, with commas between: "0-3,8". Nothing if the text is anything else; empty
/// for the empty text.
[[nodiscard]] std::optional<std::vector<unsigned>> parse_cores(std::string_view text);

/// Local. From now on the calling thread runs on these cores alone. False if the system refuses, as where the process
/// may run on none of them.
[[nodiscard]] bool bind_to_cores(const std::vector<unsigned>& cores) noexcept;

}  // namespace kedge
