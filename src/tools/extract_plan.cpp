#include "tools/extract_plan.hpp"

#include <algorithm>
#include <set>
#include <string_view>

#include "base/text.hpp"

namespace kedge::tools {
namespace {

bool is_meant(const RoutedFile& file, std::string_view name) {
  if (name.ends_with('/')) name.remove_suffix(1);
  return file.name == name ||
         (file.name.size() > name.size() && file.name.starts_with(name) && file.name[name.size()] == '/');
}

/// Whether all targets differ and none is a parent directory of another.
bool can_lie_beside_each_other(const std::vector<RoutedFile>& files) {
  std::set<std::string_view> targets;
  for (const RoutedFile& file : files) {
    if (!targets.insert(file.target).second) return false;
  }
  return std::ranges::none_of(files, [&](const RoutedFile& file) {
    const std::string_view target = file.target;
    for (std::size_t slash = target.find('/'); slash != std::string_view::npos; slash = target.find('/', slash + 1)) {
      if (targets.contains(target.substr(0, slash))) return true;
    }
    return false;
  });
}

}  // namespace

void assign_targets(std::vector<RoutedFile>& files, bool is_complete) {
  std::map<std::string_view, std::size_t> ranks;
  for (const RoutedFile& file : files) ++ranks[file.name];
  for (RoutedFile& file : files) {
    file.target = is_complete && ranks[file.name] == 1 ? file.name : compose("rank-{}/{}", file.rank, file.name);
  }
  if (can_lie_beside_each_other(files)) return;
  for (RoutedFile& file : files) file.target = compose("rank-{}/{}", file.rank, file.name);
}

std::vector<RoutedFile> select_files(const std::vector<RoutedFile>& files, const Wanted& wanted) {
  std::vector<RoutedFile> selected;
  for (const RoutedFile& file : files) {
    if (wanted.rank && file.rank != *wanted.rank) continue;
    const bool any = wanted.names.empty() ||
                     std::ranges::any_of(wanted.names, [&](const std::string& name) { return is_meant(file, name); });
    if (any) selected.push_back(file);
  }
  return selected;
}

std::optional<std::string> find_unmatched_name(const std::vector<RoutedFile>& files, const Wanted& wanted) {
  for (const std::string& name : wanted.names) {
    if (select_files(files, {{name}, wanted.rank}).empty()) return name;
  }
  return std::nullopt;
}

}  // namespace kedge::tools
