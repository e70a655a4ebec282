#include "drain/recorded_run.hpp"

#include <algorithm>
#include <utility>

#include "base/attempt.hpp"
#include "base/text.hpp"
#include "persist/posix_prefix.hpp"
#include "persist/prefix_runs.hpp"

namespace kedge::drain {
namespace {

[[noreturn]] void not_found(std::string message, const std::string& path) {
  refuse(ErrorCode::not_found, std::move(message), path);
}

/// Returns the canonical path.
std::string existing_prefix(fs::FileSystem& file_system, const std::string& prefix) {
  if (!file_system.status(prefix)) not_found("there is no such prefix; name the job's prefix", prefix);
  return file_system.canonical(prefix);
}

std::optional<persist::RunRecord> record_in(fs::FileSystem& file_system, const std::string& directory) {
  if (!file_system.status(directory)) return std::nullopt;
  std::optional<persist::RunRecord> record = persist::read_run_record(file_system, directory).record;
  return record ? record : persist::read_record_of_newest_start(file_system, directory);
}

RecordedRun known(fs::FileSystem& file_system, std::string prefix, std::string name, persist::RunRecord record) {
  RecordedRun run{std::move(prefix), std::move(name), std::move(record), {}, {}, 0, false, {}};
  const std::string records = persist::records_directory(run.prefix, run.name);
  run.newest_start = persist::newest_job_start(file_system, records);
  run.newest_start_ended = persist::has_ended(file_system, records, run.newest_start);
  for (const persist::TagEntry& entry : persist::find_run_on_prefix(file_system, run.prefix, run.name).entries) {
    if (entry.commit.run_id != run.record.run_id) continue;
    if (entry.commit.is_output) run.there.outputs.insert(entry.commit.generation);
    if (entry.commit.is_output || entry.commit.generation <= run.there.generation) continue;
    run.there.generation = entry.commit.generation;
    run.there.world_size = entry.commit.world_size;
    run.newest = commit_text(entry.commit.tag, entry.commit.generation);
    run.newest_entry = entry;
  }
  return run;
}

std::string quoted(const std::vector<std::string>& names) {
  std::string list;
  for (const std::string& name : names) list += compose("{}'{}'", list.empty() ? "" : ", ", name);
  return list;
}

/// Selects a run as a job without a run name does, but starts none.
std::string choose(const std::vector<std::string>& runs, const std::string& prefix) {
  const std::string unnamed = persist::default_run_name("");
  if (runs.empty() || std::ranges::find(runs, unnamed) != runs.end()) return unnamed;
  if (runs.size() == 1) return runs.front();
  refuse(ErrorCode::mismatch,
         compose("the prefix has checkpoints of the runs {}; name one with --run (for all of them, drain "
                 "has --all-runs)",
                 quoted(runs)),
         prefix);
}

/// Advice if KEDGE_RUN names a job whose components have runs of their own.
std::string advice_without(fs::FileSystem& file_system, const std::string& prefix, const std::string& run) {
  std::vector<std::string> parts;
  const std::string records = persist::records_directory(prefix);
  if (file_system.status(records)) {
    for (const std::string& name : file_system.list(records)) {
      if (name.starts_with(run + ".")) parts.push_back(name);
    }
  }
  if (parts.empty()) return "; the first line of the job's log names both";
  return compose(", but runs of parts of it are: {}; give each with --run (for all of them, drain has --all-runs)",
                 quoted(parts));
}

}  // namespace

std::string commit_text(std::string_view tag, std::uint64_t generation) {
  return compose("{} (generation {})", tag, generation);
}

std::vector<std::string> recorded_runs(fs::FileSystem& file_system, const std::string& prefix, const std::string& job) {
  const std::string canonical = existing_prefix(file_system, prefix);
  if (!file_system.status(persist::records_directory(canonical))) return {};
  std::vector<std::string> runs = persist::runs_with_checkpoints(file_system, canonical);
  std::erase_if(runs,
                [&](const std::string& run) { return !job.empty() && run != job && !run.starts_with(job + "."); });
  return runs;
}

RecordedRun find_recorded_run(fs::FileSystem& file_system, const std::string& prefix, const std::string& name) {
  const std::string canonical = existing_prefix(file_system, prefix);
  const std::string run = name.empty() ? choose(recorded_runs(file_system, canonical, ""), canonical) : name;
  const auto record = record_in(file_system, persist::records_directory(canonical, run));
  if (!record) {
    not_found(compose("no run '{}' is recorded on this prefix{}", run, advice_without(file_system, canonical, run)),
              canonical);
  }
  return known(file_system, canonical, run, *record);
}

RecordedRun find_recorded_run_of(fs::FileSystem& file_system, const store::StoreRecord& store) {
  const std::string canonical = existing_prefix(file_system, store.prefix);
  const std::string records = persist::records_directory(canonical);
  if (file_system.status(records)) {
    for (const std::string& name : file_system.list(records)) {
      std::optional<persist::RunRecord> record;
      (void)attempt([&] { record = record_in(file_system, fs::join(records, name)); });
      if (record && record->run_id == store.run_id && record->prefix_id == store.prefix_id) {
        return known(file_system, canonical, name, *record);
      }
    }
  }
  not_found("this prefix, where the store's checkpoints were, has no record of their run", canonical);
}

std::optional<Failure> check_no_later_start(const RecordedRun& run, std::uint64_t incarnation) {
  if (run.newest_start <= incarnation || run.newest_start_ended) return std::nullopt;
  return Failure{
      ErrorCode::busy,
      compose("the job was started again (incarnation {}) after this checkpoint was made (incarnation {}), and "
              "may still be running elsewhere, since its locks are not in the stores seen here; run this also on the "
              "nodes of that start, or, if it has ended, add --overtake",
              run.newest_start, incarnation),
      -1, run.prefix, 0};
}

std::string describe_damage(const std::shared_ptr<fs::FileSystem>& file_system, const RecordedRun& run,
                            const Options& options) {
  if (!run.newest_entry) return {};
  const persist::TagEntry& entry = *run.newest_entry;
  const persist::PrefixStorage prefix =
      persist::posix_prefix_storage(file_system, run.prefix, options.persistent, nullptr);
  const auto failure = attempt([&] {
    for (std::uint32_t rank = 0; rank < entry.commit.world_size; ++rank) {
      (void)prefix.reader->open_container(entry.directory, entry.commit, LogicalRank{rank});
    }
  });
  return failure ? to_string(*failure) : std::string();
}

}  // namespace kedge::drain
