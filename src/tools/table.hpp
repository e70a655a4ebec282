// Text in columns, and text from files made fit for a terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace kedge::tools {

/// Width of the output in columns; a path, a name or a value may be longer.
inline constexpr std::size_t kColumns = 80;
/// Where lines that were folded go on.
inline constexpr std::size_t kFoldIndent = 9;

/// Characters of a UTF-8 text; close enough to columns for names of arrays.
[[nodiscard]] std::size_t width(std::string_view text);

/// Each line of `text` folded at spaces, which it keeps elsewhere; what follows is indented by `indent`.
[[nodiscard]] std::string fold(std::string_view text, std::size_t indent = kFoldIndent);

/// Rows of cells; a column is as wide as its widest cell, in characters. What of its last cell makes a row longer than
/// kColumns goes on in further lines.
class Table {
 public:
  /// `alignment` has one letter per column: 'l' or 'r', or for a last one 'p' (of paths, which are not broken at
  /// spaces) or 'n' (of names, which stay in their row).
  explicit Table(std::string alignment) : alignment_(std::move(alignment)) {}

  /// Adds a row: as many cells as there are columns.
  void add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  /// One line per row, without spaces at the ends of lines.
  [[nodiscard]] std::string text() const;

 private:
  [[nodiscard]] std::string with_last(std::string front, const std::string& cell, std::size_t columns) const;

  std::string alignment_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace kedge::tools
