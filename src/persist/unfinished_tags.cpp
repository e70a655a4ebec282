#include "persist/unfinished_tags.hpp"

#include <charconv>
#include <optional>

#include "base/text.hpp"

namespace kedge::persist {
namespace {

constexpr std::string_view kUnfinishedPrefix = "unfinished-";

struct Unfinished {
  std::uint64_t incarnation = 0;
  std::string directory;
};

std::optional<Unfinished> parse_unfinished(std::string_view name) {
  if (!name.starts_with(kUnfinishedPrefix)) return std::nullopt;
  name.remove_prefix(kUnfinishedPrefix.size());
  Unfinished found;
  const char* end = name.data() + name.size();
  const auto parsed = std::from_chars(name.data(), end, found.incarnation);
  if (parsed.ec != std::errc{} || parsed.ptr == end || *parsed.ptr != '-') return std::nullopt;
  found.directory.assign(parsed.ptr + 1, end);
  return found;
}

}  // namespace

// Records are called unfinished-<incarnation>-<directory>: several starts may have one for the same directory.
void UnfinishedTags::mark(std::string_view directory) const {
  start_.require_newest();
  start_.directory().write_once(compose("{}{}-{}", kUnfinishedPrefix, start_.incarnation(), directory), "\n");
}

void UnfinishedTags::unmark(std::string_view directory) const {
  for (const std::string& name : start_.directory().list_files()) {
    const auto found = parse_unfinished(name);
    if (found && found->incarnation <= start_.incarnation() && found->directory == directory)
      start_.directory().remove(name);
  }
}

std::vector<std::string> UnfinishedTags::list() const {
  start_.require_newest();
  std::vector<std::string> directories;
  for (const std::string& name : start_.directory().list_files()) {
    const auto found = parse_unfinished(name);
    if (found && found->incarnation <= start_.incarnation()) directories.push_back(found->directory);
  }
  return directories;
}

}  // namespace kedge::persist
