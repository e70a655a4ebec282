#include "start/identity.hpp"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <utility>

#include "base/attempt.hpp"
#include "base/options_values.hpp"
#include "base/random.hpp"
#include "base/text.hpp"
#include "comm/wire.hpp"
#include "persist/prefix_markers.hpp"
#include "persist/prefix_runs.hpp"
#include "start/continuation.hpp"
#include "start/full_prefix_advice.hpp"
#include "start/local_stores.hpp"
#include "store/store_record_files.hpp"

namespace kedge::start {
namespace {

constexpr std::size_t kGivenUpRunsMax = 256;
constexpr std::size_t kFormerMax = 16;  // a node that was down for longer has lost its store anyway

/// Runs that another part of this launch began are no reason to refuse this one.
std::string choose_name(fs::FileSystem& file_system, const std::string& prefix,
                        const persist::LaunchInfo& launch_info) {
  const std::string& communicator_name = launch_info.communicator;
  auto runs = persist::runs_with_checkpoints(file_system, prefix);
  std::erase_if(runs, [&](const std::string& run) {
    if (communicator_name.empty() || launch_info.launch_id.empty()) return false;
    const auto newest =
        persist::newest_start(file_system, persist::records_directory(prefix, run), launch_info.launch_id);
    return newest && newest->launch_info.launch_id == launch_info.launch_id;
  });
  const std::string own_name = persist::default_run_name(communicator_name);
  const std::string own = persist::records_directory(prefix, own_name);
  const auto status = file_system.status(own);
  const bool knows_own = status && status->kind == fs::FileStatus::Kind::directory && !file_system.list(own).empty();
  if (!knows_own && !runs.empty() && std::ranges::find(runs, own_name) == runs.end()) {
    // A run whose records are lost is no reason to go on with another run.
    const auto made = persist::runs_with_manifests(file_system, prefix);
    if (std::ranges::find(made, own_name) != made.end()) return own_name;
  }
  return persist::choose_run(communicator_name, runs, knows_own);
}

/// Name of a part's run, where the job's run was given a name: a communicator that got a name of its own does not begin
/// from zero in silence.
std::string name_of_part(fs::FileSystem& file_system, const std::string& prefix, const std::string& run,
                         const std::string& communicator_name) {
  std::string own = persist::run_name_of_part(run, communicator_name);
  if (file_system.status(persist::records_directory(prefix, own))) return own;
  const auto runs = persist::runs_with_checkpoints(file_system, prefix);
  const auto of_part = std::ranges::find_if(runs, [&](const std::string& one) { return one.starts_with(run + "."); });
  if (communicator_name.empty() && of_part != runs.end()) {
    throw Error(
        ErrorCode::mismatch,
        compose(
            "the prefix has checkpoints of run '{}', which was named after its communicator, but this job would run as "
            "'{}', because its communicator has no name; to continue them, give the communicator that name; to begin "
            "another run, set run (KEDGE_RUN) to another name",
            *of_part, run));
  }
  if (own == run || std::ranges::find(runs, run) == runs.end()) return own;
  throw Error(ErrorCode::mismatch,
              compose("the prefix has checkpoints of run '{}', and this job would run as '{}', after its communicator; "
                      "to continue them, give the communicator no name; to begin another run, set run (KEDGE_RUN) to "
                      "another name",
                      run, own));
}

/// Pure. A record of the run under these ids.
persist::RunRecord record_of(const KnownRun& known, const RunIds& ids) {
  return {ids.run_id,        known.prefix, known.former_prefixes, ids.prefix_id,
          known.fingerprint, known.store,  known.given_up_runs};
}

/// What a run's records are read with; rank 0's.
struct RecordAccess {
  const persist::RunStart& start;
  fs::FileSystem& file_system;
  StartMode mode;
  const Log& log;
};

/// Where the run lay before, now that it lies on known.prefix. A copy leaves that, and the stores, to the original; the
/// same directory reached by another path is no copy. Each guess could cost commits.
void apply_record(const RecordAccess& with, const persist::RunRecord& record, KnownRun& known) {
  known.former_prefixes = record.former_prefixes;
  if (record.prefix == known.prefix || record.prefix.empty()) return;
  const std::string there = persist::records_directory(record.prefix, known.run.name);
  bool is_same = false;
  auto original = OriginalPrefix::missing;
  auto failure = attempt([&] {
    is_same = with.start.directory().is_same_directory(there);
    if (!is_same) original = find_original_prefix(with.file_system, there, known.run.id);
  });
  if (failure && !failure->path.starts_with(there)) throw Error(*std::move(failure));
  if (failure && !permits_adoption(with.mode) && with.mode != StartMode::fresh) {
    rethrow_with_advice(
        *std::move(failure),
        compose(
            "; the prefix was at this path at the last start, and Kedge cannot tell whether it was moved or copied. "
            "Restart once the path is readable or gone. If the prefix was moved, or the original will not be used "
            "again, set KEDGE_START={} for one start; to start over, set KEDGE_START=fresh",
            permits_other_fingerprint(with.mode) ? "adopt_and_accept" : "adopt"));
  }
  known.is_copy =
      original == OriginalPrefix::exists || (original == OriginalPrefix::inaccessible && !permits_adoption(with.mode));
  if (original == OriginalPrefix::inaccessible && known.is_copy && with.mode != StartMode::fresh) {
    with.log.warning(
        compose("the prefix was {} at the last start, where permission is denied: it counts as a copy and gets new "
                "stores. If it was moved, unflushed checkpoints stay in the old stores{}; to continue from them, set "
                "KEDGE_START=adopt for the first start after the move",
                record.prefix, record.store.empty() ? "" : compose(" (rank 0's is {})", record.store)));
  }
  if (!is_same) known.moved_from = record.prefix;
  if (known.is_copy) {
    known.former_prefixes.clear();
    known.store.clear();
    known.prefix_id = random_id();
    return;
  }
  std::erase_if(known.former_prefixes,
                [&](const std::string& one) { return one == known.prefix || one == record.prefix; });
  known.former_prefixes.insert(known.former_prefixes.begin(), record.prefix);
  if (known.former_prefixes.size() > kFormerMax) known.former_prefixes.resize(kFormerMax);
}

/// Local, rank 0. The records of the run that this job goes on with or begins.
persist::RecordDirectory open_records(std::shared_ptr<fs::FileSystem> file_system, const Options& options,
                                      const persist::LaunchInfo& launch_info) {
  const std::string prefix = persist::make_prefix(*file_system, options.persistent.path);
  std::string run = options.run.empty() ? choose_name(*file_system, prefix, launch_info)
                                        : name_of_part(*file_system, prefix, options.run, launch_info.communicator);
  return {std::move(file_system), prefix, std::move(run)};
}

/// Without what leads nowhere else: the same path is to be the same text at every start.
std::string normal_path(const std::filesystem::path& path) {
  std::filesystem::path normal = path.lexically_normal();
  if (!normal.has_filename()) normal = normal.parent_path();
  return normal.string();
}

/// Local, rank 0. Reads the records.
void read_known(const RecordAccess& with, KnownRun& known) {
  const persist::RecordDirectory& records = with.start.directory();
  known.run.name = records.run();
  known.prefix = records.prefix();
  const persist::FoundRecord found = persist::read_run_record(with.file_system, records.path());
  known.is_damaged = found.is_damaged;
  const std::optional<persist::RunRecord> record =
      found.record ? found.record : persist::read_record_of_newest_start(with.file_system, records.path());
  if (record) {
    known.run.id = record->run_id;
    known.prefix_id = record->prefix_id;
    known.fingerprint = record->fingerprint;
    known.store = record->store;
    known.given_up_runs = record->given_up_runs;
    apply_record(with, *record, known);
    // At once: of two first starts of a copy the second finds the place, and the locks of its stores decide.
    if (known.is_copy) {
      persist::write_run_record(with.start, record_of(known, {known.run.id, known.prefix_id}));
    }
    if (!found.record) {
      with.log.warning(compose("the run's record {} is {}; rebuilding it from the records of earlier starts",
                               persist::run_record_path(records.path()), found.is_damaged ? "damaged" : "missing"));
    }
  }
  const persist::PrefixMarkers markers(with.start);
  known.has_commits = markers.has_first_commit(known.run.id) || markers.has_first_manifest(known.run.id);
}

/// COLLECTIVE. Sends rank 0's knowledge of the run to all ranks, but what is rank 0's alone.
void broadcast_known(const comm::Group& group, KnownRun& known) {
  std::vector<std::byte> message;
  if (group.is_root()) {
    comm::Packer packer;
    packer.put(std::string_view(known.run.name));
    packer.put(known.run.id);
    packer.put(known.prefix_id);
    packer.put(known.launch_info.id);
    packer.put(known.run.incarnation);
    packer.put(std::string_view(known.prefix));
    packer.put(std::string_view(known.given_prefix));
    packer.put(known.has_commits);
    packer.put(known.is_damaged);
    packer.put(static_cast<std::uint64_t>(known.given_up_runs.size()));
    for (const Id128& run_id : known.given_up_runs) packer.put(run_id);
    for (const std::string& path : known.former_prefixes) packer.put(std::string_view(path));
    message = packer.take();
  }
  group.broadcast(message);
  if (group.is_root()) return;
  comm::Unpacker unpacker(message);
  known.run.name = unpacker.get_text();
  known.run.id = unpacker.get<Id128>();
  known.prefix_id = unpacker.get<Id128>();
  known.launch_info.id = unpacker.get<Id128>();
  known.run.incarnation = unpacker.get<std::uint64_t>();
  known.prefix = unpacker.get_text();
  known.given_prefix = unpacker.get_text();
  known.has_commits = unpacker.get_bool();
  known.is_damaged = unpacker.get_bool();
  known.given_up_runs.resize(unpacker.get<std::uint64_t>());
  for (Id128& run_id : known.given_up_runs) run_id = unpacker.get<Id128>();
  while (!unpacker.empty()) known.former_prefixes.push_back(unpacker.get_text());
}

/// Whose the manifests under this run's name are, if all records of it were lost; none if there are none. Of several
/// runs, of which the later was begun with start = fresh, that of the last one made: generations begin anew with each.
/// Others may use the name as well, or pretend to; one of this user's that is not trusted stops the start.
Id128 id_of_manifests(persist::PrefixReader& prefix, const std::string& run) {
  std::vector<persist::TagEntry> entries = prefix.list_commits().entries;
  std::erase_if(entries, [&](const persist::TagEntry& entry) { return entry.run != run; });
  std::ranges::stable_sort(entries, std::greater<>(),
                           [](const persist::TagEntry& entry) { return entry.commit.time_ns; });
  std::optional<Failure> refused;
  for (const persist::TagEntry& entry : entries) {
    auto failure = attempt([&] { prefix.require_trusted(entry); });
    if (!failure) return entry.commit.run_id;
    if (prefix.is_own(entry) && !refused) refused = std::move(failure);
  }
  comm::throw_if(refused);
  return {};
}

void warn_of_rebuilding(const comm::Group& group, const Log& log, const KnownRun& known, std::string_view source) {
  if (!group.is_root()) return;
  log.warning(compose("the prefix has no valid record of run '{}'; it is rebuilt from {}", known.run.name, source));
}

/// COLLECTIVE. Ids of a run where the prefix lacks the run's id or that of its stores; none if the run is new, or has
/// none.
RunIds find_ids(const comm::Group& group, const KnownRun& known, const RunSources& sources, const LocalStores& stores) {
  if (!known.run.id.is_none()) return {known.run.id, stores.common_ids(known.run.id).prefix_id};
  const Id128 run_id = group.decide_on_root([&] { return id_of_manifests(sources.prefix, known.run.name); });
  if (!run_id.is_none()) {
    warn_of_rebuilding(group, sources.log, known, "its manifests");
    stores.require_none_left_behind(run_id);
    return {run_id, stores.common_ids(run_id).prefix_id, true};
  }
  if (!known.has_any_record()) return {};
  const RunIds of_stores = stores.common_ids({});
  if (!of_stores.run_id.is_none()) warn_of_rebuilding(group, sources.log, known, "the stores");
  return of_stores;
}

void give_up_run(KnownRun& known, const Id128& run_id) {
  if (run_id.is_none()) return;
  std::erase(known.given_up_runs, run_id);
  known.given_up_runs.insert(known.given_up_runs.begin(), run_id);
  if (known.given_up_runs.size() > kGivenUpRunsMax) known.given_up_runs.resize(kGivenUpRunsMax);
}

/// COLLECTIVE. The run that the stores have, instead of the one that the prefix knew.
RunIds adopt_stores(KnownRun& known, const RunIds& before, const LocalStores& stores) {
  const RunIds ids = stores.adopt_unknown(before);
  if (before.run_id != ids.run_id) give_up_run(known, before.run_id);
  known.former_prefixes = stores.former_prefixes(ids);
  known.has_commits = false;
  known.fingerprint.reset();
  known.store.clear();
  return ids;
}

/// Local, rank 0. New ids for those that are none. Of two first starts at the same time the later takes those of the
/// other: then the locks of the stores decide between them.
RunIds record_ids(const persist::RunStart& start, const KnownRun& known, const RunIds& found) {
  const persist::RecordDirectory& records = start.directory();
  const auto other = persist::read_run_record(records.file_system(), records.path()).record;
  if (other && !other->prefix_id.is_none()) return {other->run_id, other->prefix_id, found.from_manifests};
  const RunIds ids{found.run_id.is_none() ? random_id() : found.run_id,
                   found.prefix_id.is_none() ? random_id() : found.prefix_id, found.from_manifests};
  persist::write_run_record(start, record_of(known, ids));
  return ids;
}

/// COLLECTIVE. A job without a name goes on with the only run that the prefix knows: not past the stores of the one
/// that it would be by itself, whose records were lost.
void require_no_other_run(const comm::Group& group, const std::string& given, const KnownRun& known,
                          const RunSources& sources) {
  const std::string own = persist::default_run_name(group.communicator().name());
  const bool is_other = given.empty() && own != known.run.name;
  if (!group.any(is_other)) return;
  group.run_on_all_ranks([&] {
    const auto stores = store::find_stores_of_run(sources.file_system, sources.store_root, sources.location_options,
                                                  own, store::OnUnreadable::skip);
    const auto here = std::ranges::find_if(
        stores, [&](const store::NamedStore& one) { return one.has_commits && one.record.prefix == known.prefix; });
    if (here == stores.end()) return;
    refuse(ErrorCode::mismatch,
           compose("this store has commits of run '{}' for the prefix {}, which has no record of them, and this job "
                   "has no run name and would continue run '{}'. Set run (KEDGE_RUN) to the intended one, or free the "
                   "store with kedge drop",
                   own, known.prefix, known.run.name),
           here->directory);
  });
}

}  // namespace

KnownRun find_run(const comm::Group& group, const Options& options, const Environment& environment, const Log& log,
                  std::unique_ptr<persist::RunStart>& start) {
  KnownRun known;
  group.run_on_all_ranks([&] {
    if (!group.is_root()) return;
    known.launch_info = launch_info_of(environment, group.communicator());
    with_full_prefix_advice([&] {
      start = std::make_unique<persist::RunStart>(open_records(environment.file_system, options, known.launch_info));
      if (options.start != StartMode::fresh) inherit_array_task(*start, known.launch_info);
      known.run.incarnation = start->take_incarnation(known.launch_info);
    });
    if (!environment.is_drain) require_may_continue(options, *start, known.launch_info);
    known.given_prefix = normal_path(absolute_path(environment, options.persistent.path));
    read_known({*start, *environment.file_system, options.start, log}, known);
  });
  broadcast_known(group, known);
  return known;
}

RunIds decide_ids(const comm::Group& group, const Options& options, KnownRun& known, const RunSources& sources) {
  const bool is_fresh = options.start == StartMode::fresh;
  if (!is_fresh) require_no_other_run(group, options.run, known, sources);
  const LocalStores stores(group, known, sources, is_fresh || known.is_identified());
  if (is_fresh) {
    known.left_behind_warning = stores.describe_left_behind();
    for (const Id128& run_id : stores.runs_with_commits()) give_up_run(known, run_id);
    give_up_run(known, known.run.id);
    return group.decide_on_root([] { return RunIds{random_id(), random_id()}; });
  }
  RunIds found{known.run.id, known.prefix_id};
  if (!known.is_identified()) found = find_ids(group, known, sources, stores);
  if (stores.has_unknown(found)) {
    if (!permits_adoption(options.start)) stores.require_none_unknown(found);
    const RunIds ids = adopt_stores(known, found, stores);
    warn_of_rebuilding(group, sources.log, known, "the stores (start = adopt)");
    group.run_on_all_ranks([&] {
      if (group.is_root())
        with_full_prefix_advice([&] { persist::write_run_record(*sources.start, record_of(known, ids)); });
    });
    return ids;
  }
  if (known.is_identified()) return found;
  if (found.run_id.is_none() && known.has_commits) {
    refuse(ErrorCode::corrupt,
           compose("run '{}' has made checkpoints, but its record, its manifests and its stores are all lost or "
                   "damaged; restore the record from a backup, or start over with KEDGE_START=fresh",
                   known.run.name),
           persist::run_record_path(persist::records_directory(known.prefix, known.run.name)));
  }
  return group.decide_on_root(
      [&] { return with_full_prefix_advice([&] { return record_ids(*sources.start, known, found); }); });
}

/// The record first: a start that dies in between leaves one run whole, never one without what is noted of it.
void write_identity(persist::RunStart& start, const KnownRun& known, const RunIds& ids, const RecordUpdate& update) {
  const persist::RecordDirectory& records = start.directory();
  const persist::FoundRecord now = persist::read_run_record(records.file_system(), records.path());
  const Id128& expected = update.is_fresh ? known.run.id : ids.run_id;
  if (now.record && now.record->run_id != expected) {
    refuse(ErrorCode::busy,
           "another start of this run began at the same time and recorded another identity; end one of the two jobs, "
           "or give each its own run (KEDGE_RUN)",
           records.path());
  }
  persist::RunRecord record = record_of(known, ids);
  record.store = update.store;
  if (!update.fingerprint.empty()) record.fingerprint = update.fingerprint;
  else if (update.is_fresh || !known.has_commits) record.fingerprint.reset();
  start.mark_begun(record);
  if (now.record != record) persist::write_run_record(start, record);
  persist::PrefixMarkers(start).remove_markers_of_others(ids.run_id);
  start.remove_nonces();
}

}  // namespace kedge::start
