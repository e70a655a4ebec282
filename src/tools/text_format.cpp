#include "tools/text_format.hpp"

#include <algorithm>
#include <utility>

#include "base/json.hpp"
#include "base/text.hpp"
#include "base/timestamp.hpp"

namespace kedge::tools {
namespace {

constexpr std::int64_t kSecond_ns = 1'000'000'000;
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

std::string utc(std::int64_t time_ns) { return format_utc(time_ns / kSecond_ns) + "Z"; }

std::string utc_cell(std::int64_t time_ns) { return format_utc(time_ns / kSecond_ns, ' '); }

std::string id_or_none(const Id128& id) { return id.is_none() ? "none" : to_string(id); }

std::string short_id(const Id128& id) { return to_string(id).substr(0, 8); }

Json id_json(const Id128& id) { return id.is_none() ? Json() : Json(to_string(id)); }

Json commit_json(const CommitHead& commit) {
  return {{"tag", commit.tag},
          {"generation", commit.generation},
          {"commit_id", to_string(commit.id)},
          {"parent_commit_id", id_json(commit.parent_id)},
          {"run_id", to_string(commit.run_id)},
          {"incarnation", commit.incarnation},
          {"time", utc(commit.time_ns)},
          {"time_ns", commit.time_ns},
          {"world_size", commit.world_size}};
}

std::string size_text(std::uint64_t size_bytes) {
  return size_bytes < 1024 ? compose("{} bytes", size_bytes)
                           : compose("{} ({} bytes)", human_bytes(size_bytes), size_bytes);
}

std::string count_text(std::uint64_t count, const std::string& noun) {
  return compose("{} {}{}", count, noun, count == 1 ? "" : "s");
}

Json shape_json(const Shape& shape) {
  Json extents = Json::array();
  for (const std::uint64_t extent : shape.extents()) extents.push_back(extent);
  return extents;
}

Json attribute_json(const AttributeValue& value) {
  return std::visit([](const auto& held) { return Json(held); }, value);
}

std::string json_text(const Json& json) { return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n"; }

std::string dtype_text(DataType dtype, std::string_view members) {
  return members.empty() ? std::string(to_string(dtype)) : "struct";
}

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
