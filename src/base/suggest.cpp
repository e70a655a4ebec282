#include "base/suggest.hpp"

#include <algorithm>
#include <numeric>

namespace kedge {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);  // distances from a[0, i) to every b[0, j)
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0U : 1U);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

std::optional<std::string> nearest_name(std::string_view word, const std::vector<std::string>& known) {
  // Cut short: the shortest name that continues it.
  constexpr std::size_t kTelling = 4;
  const auto continues = [&](const std::string& name) { return name.size() > word.size() && name.starts_with(word); };
  const std::string* whole = nullptr;
  for (const std::string& name : known) {
    if (name == word) return name;
    if (continues(name) && (whole == nullptr || name.size() < whole->size())) whole = &name;
  }
  if (whole != nullptr && word.size() >= kTelling) return *whole;
  std::size_t best = 1 + word.size() / 3;  // more edits than this make another word of it
  std::optional<std::string> found;
  for (const std::string& name : known) {
    const std::size_t distance = edit_distance(word, name);
    if (distance < best || (distance == best && !found)) {
      best = distance;
      found = name;
    }
  }
  return found;
}

}  // namespace kedge
