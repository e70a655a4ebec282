#include "persist/prefix_runs.hpp"

#include <algorithm>
#include <set>

#include "base/attempt.hpp"
#include "base/text.hpp"
#include "fs/tree.hpp"
#include "kedge/error.hpp"
#include "persist/posix_prefix.hpp"
#include "persist/prefix_markers.hpp"
#include "persist/run_record.hpp"
#include "persist/run_start.hpp"

namespace kedge::persist {
namespace {

constexpr std::size_t kNameCharactersMax = 64;
constexpr std::string_view kUnnamed = "main";

using Kind = fs::FileStatus::Kind;

void require_not_writable_by_all(fs::FileSystem& file_system, const std::string& directory) {
  const fs::FileStatus status = directory_status(file_system, directory);
  if (!fs::is_writable_by_all(status)) return;
  refuse(
      ErrorCode::io,
      compose("every user can replace files in the prefix (mode {:04o}); run chmod o-w on this directory", status.mode),
      directory);
}

bool is_own_directory(fs::FileSystem& file_system, const std::string& path) {
  const auto status = file_system.status(path);
  return status && status->kind == Kind::directory && status->owner == file_system.user();
}

/// MPI gives MPI_COMM_WORLD, MPI_COMM_SELF and the like their names.
bool is_explicit_name(std::string_view communicator_name) {
  return !communicator_name.empty() && !communicator_name.starts_with("MPI_COMM_");
}

constexpr int kTriesMax = 5;

}  // namespace

std::string explicit_name(std::string_view communicator_name) {
  return is_explicit_name(communicator_name) ? std::string(communicator_name) : std::string();
}

std::string run_name_of_part(const std::string& run, std::string_view communicator_name) {
  if (!is_explicit_name(communicator_name) || run == default_run_name(communicator_name)) return run;
  std::string name = compose("{}.{}", run, default_run_name(communicator_name));
  if (name.size() <= kNameCharactersMax) return name;
  throw Error(ErrorCode::invalid_argument,
              compose("the run's name '{}', made of run and the communicator's name, has more than {} characters; make "
                      "one of them shorter",
                      name, kNameCharactersMax));
}

std::string scavenge_directory(std::string_view records) { return fs::join(records, "scavenged"); }

fs::FileStatus directory_status(fs::FileSystem& file_system, const std::string& path) {
  const auto status = file_system.status(path);
  if (!status || status->kind != Kind::directory)
    refuse(ErrorCode::io, "not a directory; remove it or choose another prefix", path);
  return *status;
}

std::string records_directory(std::string_view prefix) { return fs::join(prefix, ".kedge"); }

std::string records_directory(std::string_view prefix, std::string_view run) {
  return fs::join(records_directory(prefix), run);
}

std::string make_prefix(fs::FileSystem& file_system, const std::string& prefix) {
  try {
    fs::make_directories(file_system, prefix, 0775);  // whatever the umask: not one that is refused below
  } catch (const Error& error) {
    Failure failure = error.failure();
    failure.message += "; this is the prefix: set persistent.path to a directory that all nodes share";
    throw Error(std::move(failure));
  }
  std::string path = file_system.canonical(prefix);
  require_not_writable_by_all(file_system, path);
  const std::string records = records_directory(path);
  file_system.make_directory(records, 0755);
  require_not_writable_by_all(file_system, records);
  return path;
}

std::vector<std::string> runs_with_checkpoints(fs::FileSystem& file_system, const std::string& prefix) {
  const std::string records = records_directory(prefix);
  std::vector<std::string> runs;
  bool any_records = false;
  for (const std::string& run : file_system.list(records)) {
    const std::string directory = fs::join(records, run);
    if (!is_own_directory(file_system, directory) || file_system.list(directory).empty()) continue;
    any_records = true;
    if (has_checkpoints(file_system, directory)) runs.push_back(run);
  }
  return any_records ? runs : runs_with_manifests(file_system, prefix);
}

std::vector<std::string> runs_with_manifests(fs::FileSystem& file_system, const std::string& prefix) {
  std::set<std::string> named;
  for (const TagEntry& entry : list_tags(file_system, prefix).entries) {
    if (is_own_directory(file_system, fs::join(prefix, entry.directory))) named.insert(entry.run);
  }
  return {named.begin(), named.end()};
}

std::string default_run_name(std::string_view communicator_name) {
  if (!is_explicit_name(communicator_name)) return std::string(kUnnamed);
  std::string name;
  for (const char c : communicator_name.substr(0, kNameCharactersMax)) {
    const bool plain =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
    name += plain ? c : '-';
  }
  return name;
}

std::string choose_run(std::string_view communicator_name, std::span<const std::string> runs, bool knows_default) {
  std::string own = default_run_name(communicator_name);
  const bool has_own = std::ranges::find(runs, own) != runs.end();
  if (runs.empty() || has_own || (is_explicit_name(communicator_name) && knows_default)) return own;
  if (runs.size() == 1 && !is_explicit_name(communicator_name)) return runs.front();
  std::string list;
  for (const std::string& run : runs) list += compose("{}'{}'", list.empty() ? "" : ", ", run);
  throw Error(
      ErrorCode::mismatch,
      compose("the prefix has checkpoints of the run{} {}, but this job would run as '{}', which has none; to continue "
              "{}, {}",
              runs.size() == 1 ? "" : "s", list, own, runs.size() == 1 ? "it" : "one of them",
              is_explicit_name(communicator_name)
                  ? compose("give the communicator its name; to begin another, set run (KEDGE_RUN) to '{}'", own)
                  : "set run (KEDGE_RUN) to its name; to start another, set run to a new one"));
}

RunOnPrefix find_run_on_prefix(fs::FileSystem& file_system, const std::string& prefix, const std::string& run) {
  RunOnPrefix found;
  const TagList list = list_tags(file_system, prefix);
  for (const TagEntry& entry : list.entries) {
    const auto status = file_system.status(fs::join(prefix, entry.directory));
    if (entry.run == run && status && status->owner == file_system.user()) found.entries.push_back(entry);
  }
  for (const UnusableTag& one : list.unusable_tags) {
    if (one.has_manifest) found.unreadable.push_back(one.directory);
  }
  return found;
}

RunOnPrefix remove_run(const std::shared_ptr<fs::FileSystem>& file_system, const std::string& prefix,
                       const std::string& run) {
  RunStart start({file_system, prefix, run});
  (void)start.take_incarnation();
  start.mark_begun(read_run_record(*file_system, start.directory().path()).record.value_or(RunRecord{}));
  RunOnPrefix removed;
  const PrefixStorage storage = posix_prefix_storage(file_system, prefix, {}, &start);
  // Again until there is none: a job may have been about to publish when it was overtaken.
  for (int tries = 0; tries < kTriesMax; ++tries) {
    const RunOnPrefix found = find_run_on_prefix(*file_system, prefix, run);
    for (const TagEntry& entry : found.entries) storage.remover->remove_commit(entry);
    removed.entries.insert(removed.entries.end(), found.entries.begin(), found.entries.end());
    removed.unreadable = found.unreadable;
    if (tries > 0 && found.entries.empty()) break;
    if (const std::vector<std::string> problems = storage.remover->remove_leftovers({}); !problems.empty()) {
      throw Error(Failure{ErrorCode::io, compose("not all of it could be removed; try again: {}", problems.front()), -1,
                          prefix, 0});
    }
  }
  start.remove_records();
  return removed;
}

}  // namespace kedge::persist
