#include "persist/prefix_markers.hpp"

#include <optional>

#include "base/attempt.hpp"
#include "base/text.hpp"

namespace kedge::persist {
namespace {

constexpr std::string_view kFirstCommit = "first-commit";
constexpr std::string_view kFirstManifest = "first-master";  // on disk: do not change
constexpr std::size_t kIdCharacters = 32;

std::string discarded_name(const Id128& commit_id) { return "discarded-" + to_string(commit_id); }

}  // namespace

bool has_checkpoints(fs::FileSystem& file_system, const std::string& directory) {
  return file_system.status(fs::join(directory, kFirstCommit)) ||
         file_system.status(fs::join(directory, kFirstManifest));
}

/// The commit's id, and the run's behind it.
void PrefixMarkers::mark(std::string_view name, const Id128& run_id, const Id128& commit_id) const {
  directory().write_once(name, compose("{}\n{}\n", to_string(commit_id), to_string(run_id)));
}

/// A marker that cannot be read may be this run's.
bool PrefixMarkers::has_marker(std::string_view name, const Id128& run_id) const {
  if (!directory().contains(name)) return false;
  std::optional<Id128> whose;
  (void)attempt([&] {
    const std::string text = directory().read(name);
    if (text.size() > kIdCharacters + 1) whose = parse_id(text.substr(kIdCharacters + 1, kIdCharacters));
  });
  return !whose || run_id.is_none() || whose->is_none() || *whose == run_id;
}

bool PrefixMarkers::has_first_commit(const Id128& run_id) const { return has_marker(kFirstCommit, run_id); }

void PrefixMarkers::mark_first_commit(const Id128& run_id, const Id128& commit_id) const {
  start_.require_newest();
  mark(kFirstCommit, run_id, commit_id);
}

void PrefixMarkers::remove_first_commit() const {
  start_.require_newest();
  directory().remove(kFirstCommit);
  directory().sync();
}

bool PrefixMarkers::has_first_manifest(const Id128& run_id) const { return has_marker(kFirstManifest, run_id); }

void PrefixMarkers::mark_first_manifest(const Id128& run_id, const Id128& commit_id) const {
  mark(kFirstManifest, run_id, commit_id);
}

void PrefixMarkers::remove_markers_of_others(const Id128& run_id) const {
  for (const std::string_view name : {kFirstCommit, kFirstManifest}) {
    if (directory().contains(name) && !has_marker(name, run_id)) directory().remove(name);
  }
}

bool PrefixMarkers::is_discarded(const Id128& commit_id) const {
  return directory().contains(discarded_name(commit_id));
}

void PrefixMarkers::mark_discarded(const Id128& commit_id) const {
  directory().write_once(discarded_name(commit_id), "\n");
}

}  // namespace kedge::persist
