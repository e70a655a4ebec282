// Facts in the words that all subcommands use, for people and for programs.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/json_forward.hpp"
#include "kedge/attributes.hpp"
#include "kedge/types.hpp"

namespace kedge::tools {

/// "2026-09-21T14:13:20Z".
[[nodiscard]] std::string utc(std::int64_t time_ns);
/// "2026-09-21 14:13:20", for a column that says UTC.
[[nodiscard]] std::string utc_cell(std::int64_t time_ns);

/// All 32 digits, or "none".
[[nodiscard]] std::string id_or_none(const Id128& id);
/// The first 8 digits, as in the names of tag directories.
[[nodiscard]] std::string short_id(const Id128& id);
/// All 32 digits, or null.
[[nodiscard]] Json id_json(const Id128& id);

/// "512 bytes", "1.5 MiB (1572864 bytes)".
[[nodiscard]] std::string size_text(std::uint64_t size_bytes);
/// "1 container", "8 containers".
[[nodiscard]] std::string count_text(std::uint64_t count, const std::string& noun);

[[nodiscard]] Json shape_json(const Shape& shape);
[[nodiscard]] Json attribute_json(const AttributeValue& value);

/// JSON text that --json prints. Names may be any bytes; JSON stays JSON.
[[nodiscard]] std::string json_text(const Json& json);

/// Type of a region's elements, for a table: "float64", or "struct".
[[nodiscard]] std::string dtype_text(DataType dtype, std::string_view members);

}  // namespace kedge::tools
