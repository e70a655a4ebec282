#include "tools/table.hpp"

#include <algorithm>
#include <utility>

namespace kedge::tools {
namespace {

constexpr std::size_t kColumnGap = 2;

bool continues(char c) noexcept { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U; }

// `front` begins the text and is not broken.
std::string folded_line(std::string front, std::string_view text, std::size_t indent) {
  std::string out = std::move(front);
  std::size_t used = width(out);
  bool begun = !out.empty();  // the line has a word, so it may end
  while (!text.empty()) {
    const std::size_t gap = std::min(text.find_first_not_of(' '), text.size());
    const std::size_t end = std::min(text.find(' ', gap), text.size());
    const std::string_view word = text.substr(gap, end - gap);
    if (begun && used + gap + width(word) > kColumns) {
      out.erase(out.find_last_not_of(' ') + 1);
      out += '\n' + std::string(indent, ' ');
      used = indent;
    } else {
      out.append(gap, ' ');
      used += gap;
    }
    out += word;
    used += width(word);
    begun = begun || !word.empty();
    text.remove_prefix(end);
  }
  return out;
}

}  // namespace

std::size_t width(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) { return !continues(c); }));
}

std::string fold(std::string_view text, std::size_t indent) {
  std::string out;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    out += folded_line({}, text.substr(0, end), indent);
    if (end == std::string_view::npos) break;
    out += '\n';
    text.remove_prefix(end + 1);
  }
  return out;
}

std::string Table::text() const {
  std::vector<std::size_t> widths(alignment_.size(), 0);
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width(row[i]));
  }
  std::string out;
  for (const auto& row : rows_) {
    std::string front;
    for (std::size_t i = 0; i + 1 < row.size(); ++i) {
      const std::string padding(widths[i] - width(row[i]), ' ');
      front += (alignment_[i] == 'r' ? padding + row[i] : row[i] + padding) + std::string(kColumnGap, ' ');
    }
    std::string line = append_last_cell(std::move(front), row.back(), widths.back());
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + '\n';
  }
  return out;
}

std::string Table::append_last_cell(std::string front, const std::string& cell, std::size_t columns) const {
  if (alignment_.back() == 'r') return front + std::string(columns - width(cell), ' ') + cell;
  if (alignment_.back() == 'n') return front + cell;
  if (alignment_.back() == 'l') return folded_line(std::move(front), cell, kFoldIndent);
  if (width(front) + width(cell) <= kColumns) return front + cell;
  front.erase(front.find_last_not_of(' ') + 1);
  return front + '\n' + std::string(kFoldIndent, ' ') + cell;
}

}  // namespace kedge::tools
