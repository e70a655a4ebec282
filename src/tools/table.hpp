// Text in columns, and printable versions of text from files.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace kedge::tools {

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
