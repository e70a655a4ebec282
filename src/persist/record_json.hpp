// Texts and paths in the JSON of a run's records.
#pragma once

#include <optional>
#include <string>

#include "base/json_forward.hpp"

namespace kedge::persist {

/// Nothing if there is no text of this name.
[[nodiscard]] std::optional<std::string> text_in(const Json& content, const char* key);

/// JSON is UTF-8, and a path need not be: then it is an object with its bytes in hexadecimal.
[[nodiscard]] Json bytes_json(const std::string& bytes);

/// Nothing if it is neither.
[[nodiscard]] std::optional<std::string> bytes_of(const Json& value);

/// Empty if there are none.
[[nodiscard]] std::string bytes_in(const Json& content, const char* key);

}  // namespace kedge::persist
