// Formats shared by all subcommands, for people and programs.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/json_forward.hpp"
#include "kedge/attributes.hpp"
#include "kedge/types.hpp"

namespace kedge::tools {

/// A time such as "2026-09-21T14:13:20Z".
[[nodiscard]] std::string utc(std::int64_t time_ns);
/// A time such as "2026-09-21 14:13:20", for a column in UTC.
[[nodiscard]] std::string utc_cell(std::int64_t time_ns);

/// All 32 digits, or "none".
[[nodiscard]] std::string id_or_none(const Id128& id);
/// The first 8 digits, as in the names of tag directories.
[[nodiscard]] std::string short_id(const Id128& id);
/// All 32 digits, or null.
[[nodiscard]] Json id_json(const Id128& id);

/// A size such as "512 bytes" or "1.5 MiB (1572864 bytes)".
[[nodiscard]] std::string size_text(std::uint64_t size_bytes);
/// A count such as "1 container" or "8 containers".
[[nodiscard]] std::string count_text(std::uint64_t count, const std::string& noun);

[[nodiscard]] Json shape_json(const Shape& shape);
[[nodiscard]] Json attribute_json(const AttributeValue& value);

/// Valid JSON, whatever bytes names contain.
[[nodiscard]] std::string json_text(const Json& json);

/// A region's element type for a table: e.g. "float64" or "struct".
[[nodiscard]] std::string dtype_text(DataType dtype, std::string_view members);

}  // namespace kedge::tools
