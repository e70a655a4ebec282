// Text in columns, and text from files made fit for a terminal.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kedge::tools {

/// Names come from files that anybody may have made: control characters and bytes that are no UTF-8 become \xNN.
[[nodiscard]] std::string printable(std::string_view text);

/// Rows of cells; a column is as wide as its widest cell, in characters.
class Table {
 public:
  /// `alignment` has one letter per column: 'l' or 'r'.
  explicit Table(std::string alignment) : alignment_(std::move(alignment)) {}

  /// As many cells as there are columns.
  void add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  /// One line per row, without spaces at the ends of lines.
  [[nodiscard]] std::string text() const;

 private:
  std::string alignment_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace kedge::tools
