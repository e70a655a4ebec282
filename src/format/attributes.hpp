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

/// Nothing, or invalid_argument that names the key: empty, too long or no UTF-8; a number that is not finite; text that
/// is no UTF-8; too much in all.
[[nodiscard]] std::optional<Failure> check(const Attributes& attributes);

/// One JSON object. Only for what check() lets pass.
[[nodiscard]] std::string encode(const Attributes& attributes);

/// The reverse; spaces behind the object are padding. Whole numbers become int64, others double, an empty array one of
/// int64. `path` is for the message. Throws Error{corrupt}.
[[nodiscard]] Attributes decode_attributes(std::string_view text, std::string_view path);

}  // namespace kedge::format
