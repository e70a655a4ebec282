// Formats shared by all subcommands, for people and programs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

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
/// What every command says of a commit to programs.
[[nodiscard]] Json commit_json(const CommitHead& commit);

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

/// Width of the output; paths, names and values may be longer.
inline constexpr std::size_t kColumns = 80;
/// Indentation of folded lines.
inline constexpr std::size_t kFoldIndent = 9;

/// Number of characters in UTF-8 text; close enough to columns for names of arrays.
[[nodiscard]] std::size_t width(std::string_view text);

/// Folds each line at spaces, which are kept elsewhere; continuation lines are indented by `indent`.
[[nodiscard]] std::string fold(std::string_view text, std::size_t indent = kFoldIndent);

/// Rows of cells; a column is as wide as its widest cell, in characters. A last cell that exceeds kColumns continues on
/// further lines.
class Table {
 public:
  /// `alignment` has a letter per column: 'l' or 'r'; for the last also 'p' (paths, not broken at spaces) or 'n'
  /// (names, never folded).
  explicit Table(std::string alignment) : alignment_(std::move(alignment)) {}

  /// Adds a row with a cell for each column.
  void add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  /// One line per row, without trailing spaces.
  [[nodiscard]] std::string text() const;

 private:
  [[nodiscard]] std::string append_last_cell(std::string front, const std::string& cell, std::size_t columns) const;

  std::string alignment_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace kedge::tools
