// Text for a shell: people paste commands from the log.
#pragma once

#include <string>
#include <string_view>

namespace kedge {

/// Pure. In single quotes, whatever it contains.
[[nodiscard]] std::string in_quotes(std::string_view text);

/// Pure. The text as one word of a shell: in quotes if it needs them.
[[nodiscard]] std::string shell_word(std::string_view text);

}  // namespace kedge
