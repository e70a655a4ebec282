// Attributes as JSON: how they lie in containers and manifests.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "kedge/attributes.hpp"
#include "kedge/error.hpp"

namespace kedge::format {

inline constexpr std::size_t kAttributeKeyBytesMax = 255;
inline constexpr std::size_t kAttributesBytesMax = 65536;

/// Returns invalid_argument with the key if a key is empty, too long or not UTF-8, a number is not finite, a text is
/// not UTF-8, or all together are too large.
[[nodiscard]] std::optional<Failure> check_attributes(const Attributes& attributes);

/// Returns one JSON object of attributes that passed check_attributes().
[[nodiscard]] std::string encode_attributes(const Attributes& attributes);

/// Parses encode_attributes()'s text, which may be padded with spaces. Whole numbers become int64, others double; an
/// empty array becomes one of int64. `path` is for the message. Throws Error{corrupt}.
[[nodiscard]] Attributes decode_attributes(std::string_view text, std::string_view path);

}  // namespace kedge::format
