#include "drain/scavenge.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/attempt.hpp"
#include "base/hash.hpp"
#include "base/text.hpp"
#include "comm/group.hpp"
#include "comm/hosted/hosted_ranks.hpp"
#include "drain/flush_newest.hpp"
#include "drain/placement.hpp"
#include "drain/recorded_run.hpp"
#include "drain/stores_content.hpp"
#include "fs/copy.hpp"
#include "fs/tree.hpp"
#include "persist/prefix_runs.hpp"
#include "persist/tag_directory.hpp"
#include "store/inspect.hpp"
#include "store/location.hpp"
#include "store/run_directory.hpp"
#include "store/store_removal.hpp"

namespace kedge::drain {
namespace {

constexpr std::string_view kLock = "lock";

std::string scavenge_directory(const RecordedRun& run) {
  return persist::scavenge_directory(persist::records_directory(run.prefix, run.name));
}

/// Where the filesystem has no locks, it is as if the lock were free.
std::optional<std::unique_ptr<fs::Lock>> lock_if_possible(const start::Environment& environment, const RecordedRun& run,
                                                          std::string_view name) {
  std::unique_ptr<fs::Lock> lock;
  const std::string path = fs::join(scavenge_directory(run), name);
  const auto failure = attempt([&] { lock = environment.file_system->try_lock(path, environment.machine); });
  if (!failure && !lock) return std::nullopt;
  return lock;
}

/// The lock of the process that copies a node's store.
std::string lock_of(std::string_view node) { return compose(".lock-{}", node); }
std::string partial_of(std::string_view node) { return compose(".part-{}", node); }

/// The store's name in a node's directory, where a start of the run looks for it.
std::string store_name(const fs::FileSystem& files, const RecordedRun& run) {
  store::LocationOptions configured;
  configured.configured = ".";
  return store::directory_name(files.user(), configured, run.name, run.record.prefix_id);
}

/// Copies one node's store.
class Copy {
 public:
  Copy(fs::FileSystem& files, const RecordedRun& run, const start::Environment& environment, std::string store)
      : files_(files), run_(run), environment_(environment), store_(std::move(store)) {}

  /// Returns the copied bytes; 0 if nothing is newer than on the prefix.
  std::uint64_t run() {
    const std::vector<std::string> names = newer_files();
    if (names.empty()) return 0;
    fs::make_directories(files_, scavenge_directory(run_), 0700);
    const auto lock = lock_if_possible(environment_, run_, lock_of(node()));
    if (!lock) {
      refuse(ErrorCode::busy, "another kedge scavenge is copying this store; wait for it", store_);
    }
    if (is_copied(names)) return bytes_;
    require_space(names);
    const std::string partial = fs::join(scavenge_directory(run_), partial_of(node()));
    const auto failure = attempt([&] { copy_all(names, partial); });
    if (failure) {
      (void)attempt([&] { (void)fs::remove_tree(files_, partial); });
      throw Error(*failure);
    }
    const std::string whole = fs::join(scavenge_directory(run_), node());
    (void)fs::remove_tree(files_, whole);  // left by an earlier call
    files_.rename(partial, whole);
    files_.sync_directory(scavenge_directory(run_));
    return bytes_;
  }

 private:
  /// A name that each call for this store computes, and no other's.
  [[nodiscard]] std::string node() const {
    const std::string& machine = environment_.machine;
    return compose("{}{}-{:016x}", persist::kScavengedNode, machine.substr(machine.rfind('/') + 1),
                   fnv1a(compose("{}\n{}", machine, store_)));
  }

  [[nodiscard]] std::vector<std::string> newer_files() const {
    const store::RunDirectory here(environment_.file_system, {store_});
    // Parity of an output has its generation, but does not say that it is an output.
    std::set<std::uint64_t> outputs;
    for (const StoredContainer& one : containers_in(environment_.file_system, store_, run_.record.run_id)) {
      if (one.is_output) outputs.insert(one.generation);
    }
    std::vector<std::string> names;
    for (const store::FileName& name : here.list_files()) {
      const store::ScannedFile held = store::inspect_file(here, name, run_.record.run_id, Verify::headers).scanned_file;
      if (!held.key() || !held.intact) continue;
      const std::uint64_t generation = held.generation();
      const bool is_missing =
          outputs.contains(generation) ? !run_.there.outputs.contains(generation) : generation > run_.there.generation;
      if (is_missing) names.push_back(to_string(name));
    }
    return names;
  }

  /// Whether another call copied it and may be flushing that copy, which must not be replaced.
  [[nodiscard]] bool is_copied(const std::vector<std::string>& names) {
    const std::string copy = fs::join(fs::join(scavenge_directory(run_), node()), store_name(files_, run_));
    if (!files_.status(copy) || !store::is_private_directory(files_, copy)) return false;
    const store::RunDirectory there(environment_.file_system, {copy});
    const store::RunDirectory here(environment_.file_system, {store_});
    const std::vector<store::FileName> copied = there.list_files();
    std::uint64_t bytes = 0;
    for (const store::FileName& name : here.list_files()) {
      if (std::ranges::find(names, to_string(name)) == names.end()) continue;
      if (std::ranges::find(copied, name) == copied.end()) return false;
      const store::ScannedFile mine = store::inspect_file(here, name, run_.record.run_id, Verify::headers).scanned_file;
      const store::ScannedFile other = store::inspect_file(there, name, run_.record.run_id, Verify::all).scanned_file;
      if (!other.intact || other.key() != mine.key() || other.generation() != mine.generation()) return false;
      bytes += mine.size_bytes;
    }
    bytes_ = bytes;
    return true;
  }

  void require_space(const std::vector<std::string>& names) const {
    std::uint64_t needed = 0;
    for (const std::string& name : names) {
      if (const auto status = files_.status(fs::join(store_, name))) needed += status->size_bytes;
    }
    const fs::Space space = files_.space(run_.prefix);
    if (space.free_bytes >= needed) return;
    refuse(ErrorCode::no_space,
           compose("copying this node's store needs {}, and {} is free ({}); free some space and run this "
                   "again",
                   human_bytes(needed), human_bytes(space.free_bytes), space.limit),
           run_.prefix);
  }

  void copy_all(std::vector<std::string> names, const std::string& partial) {
    (void)fs::remove_tree(files_, partial);
    files_.make_directory(partial, 0700);
    const std::string target = fs::join(partial, store_name(files_, run_));
    files_.make_directory(target, 0700);
    for (const std::string_view record : {store::kRunRecord, store::kCommitRecord}) {
      if (files_.status(fs::join(store_, record))) names.emplace_back(record);
    }
    for (const std::string& name : names) copy_one(fs::join(store_, name), fs::join(target, name));
    files_.sync_directory(target);
    files_.sync_directory(partial);
  }

  void copy_one(const std::string& from, const std::string& to) {
    const auto source = files_.open(from, fs::Access::read);
    const auto copy = files_.create(to, 0600);
    if (!copy) refuse(ErrorCode::io, "the file already exists: another kedge scavenge is copying this store", to);
    const std::uint64_t bytes = source->status().size_bytes;
    fs::copy_unchecked(*source, *copy, bytes);
    copy->sync();
    bytes_ += bytes;
  }

  fs::FileSystem& files_;
  const RecordedRun& run_;
  const start::Environment& environment_;
  std::string store_;
  std::uint64_t bytes_ = 0;
};

/// The containers copied from all nodes so far.
struct Copied {
  std::vector<std::string> nodes;
  StoredContainer newest;                ///< the newest one
  std::vector<FlushPass> shifts;         ///< with hosts as indexes into `nodes`
  std::map<std::uint64_t, Tag> outputs;  ///< of outputs, by generation
};

Copied read_copied(const start::Environment& environment, const RecordedRun& run) {
  fs::FileSystem& files = *environment.file_system;
  Copied copied;
  std::vector<SeenContainer> seen;
  for (const std::string& node : files.list(scavenge_directory(run))) {
    if (!node.starts_with(persist::kScavengedNode)) continue;
    const std::string store = fs::join(fs::join(scavenge_directory(run), node), store_name(files, run));
    std::vector<StoredContainer> containers;
    const auto not_ours = attempt([&] {
      if (!store::is_private_directory(files, store)) throw Error(ErrorCode::not_found, "no copy of a store");
      containers = containers_in(environment.file_system, store, run.record.run_id);
    });
    if (not_ours) continue;
    for (const StoredContainer& one : containers) seen.push_back({static_cast<int>(copied.nodes.size()), one});
    (void)attempt([&] { copied.outputs.merge(outputs_in(environment.file_system, store, run.record.run_id)); });
    copied.nodes.push_back(node);
  }
  const std::vector<SeenContainer> missing = find_missing(run.there, seen);
  copied.newest = newest_of(missing);
  copied.shifts = plan_flush_passes(missing, static_cast<int>(copied.nodes.size()));
  return copied;
}

/// The copies stand for the nodes' stores: a start of the run in this process, whose ranks are threads.
Flushed flush_copied(const Options& given, const start::Environment& environment, const RecordedRun& run,
                     const Copied& copied, const FlushPass& shift) {
  Options options = options_to_flush(given);
  options.run = run.name;
  options.persistent.path = run.prefix;
  options.redundancy = {};
  options.redundancy.every = 0;  // persistent commits need no protection
  options.topology = {};
  options.store = {};
  options.events.path.clear();
  options.log.level = std::max(options.log.level, LogLevel::warning);  // these stores' paths would confuse users
  comm::HostedRanks ranks(std::vector<int>(shift.layout.world_size, 0), nullptr);
  const std::vector<Tag> tags = tags_of(copied.outputs, shift.outputs);
  Flushed flushed;
  const auto start = [&](int rank, std::unique_ptr<Transport> transport) {
    const int place = shift.layout.hosts[static_cast<std::size_t>(rank)];
    const std::string& node = copied.nodes[static_cast<std::size_t>(place)];
    Options own = options;
    own.store.path = fs::join(scavenge_directory(run), node);
    start::Environment world = environment;
    world.node = node;
    world.machine = "scavenged";
    auto communicator = make_communicator(std::move(transport));
    Flushed done = shift.with_checkpoint ? flush_newest(std::move(communicator), own, world)
                                         : flush_outputs(std::move(communicator), own, world, tags);
    if (rank == 0) flushed = std::move(done);
  };
  comm::rethrow_cause(ranks.run(start, std::chrono::seconds(0)));
  return flushed;
}

/// Removes copies, also those of calls that were killed, but not of those that go on.
void remove_copies(const start::Environment& environment, const RecordedRun& run, const Copied& copied) {
  fs::FileSystem& files = *environment.file_system;
  const std::string directory = scavenge_directory(run);
  for (const std::string& node : copied.nodes) (void)fs::remove_tree(files, fs::join(directory, node));
  const std::string partial = partial_of("");
  for (const std::string& name : files.list(directory)) {
    if (!name.starts_with(partial)) continue;
    const auto lock = lock_if_possible(environment, run, lock_of(name.substr(partial.size())));
    if (lock && *lock) (void)fs::remove_tree(files, fs::join(directory, name));
  }
}

std::string describe_result(const RecordedRun& run, const Flushed& flushed) {
  const std::string outputs = outputs_of(flushed);
  if (!flushed.commit) {
    if (outputs.empty()) return "the outputs that are not on the prefix cannot be recovered from the copies";
    const std::string there = run.newest.empty() ? "" : compose("{} is already on the prefix; and", run.newest);
    return there.empty() ? compose("flushed{}", outputs) : there + outputs;
  }
  const std::string name = commit_text(flushed.commit->tag, flushed.commit->generation);
  std::string words = flushed.was_there
                          ? compose("{} is the newest that can be recovered, and is already on the prefix", name)
                          : compose("flushed {}, {}: {}", name, human_bytes(flushed.total_bytes),
                                    fs::join(run.prefix, persist::tag_directory_name(*flushed.commit)));
  if (!outputs.empty()) words += compose("; and{}", outputs);
  return words;
}

std::string flush_available(const Options& options, const start::Environment& environment, const RecordedRun& run,
                            const Copied& copied) {
  Flushed flushed;
  bool lacks_outputs = false;
  for (const FlushPass& shift : copied.shifts) {
    const Flushed now = flush_copied(options, environment, run, copied, shift);
    if (shift.with_checkpoint) flushed.commit = now.commit;
    flushed.total_bytes += now.total_bytes;
    flushed.was_there = flushed.was_there || now.was_there;
    flushed.outputs += now.outputs;
    lacks_outputs = lacks_outputs || now.outputs < shift.outputs.size();
  }
  const std::string words = describe_result(run, flushed);
  const std::uint64_t flushed_generation = flushed.commit ? flushed.commit->generation : 0;
  const bool lacks_checkpoint = !copied.newest.is_output && copied.newest.generation > flushed_generation;
  if (lacks_checkpoint || lacks_outputs) {
    return words +
           compose("; the copies are kept, because they have parts of {}: scavenge the missing nodes, or remove {}",
                   lacks_checkpoint ? compose("generation {}", copied.newest.generation)
                                    : std::string("incomplete outputs"),
                   scavenge_directory(run));
  }
  remove_copies(environment, run, copied);
  return words;
}

struct Finished {
  std::string words;
  bool flushed = false;
};

/// With the lock.
Finished finish_once(const Options& options, const start::Environment& environment, const RecordedRun& run,
                     const Copied& copied, bool at_once, bool overtakes) {
  if (copied.newest.generation == 0) {
    remove_copies(environment, run, copied);
    if (run.newest.empty()) return {"no node has been copied yet"};
    return {compose("{} is already on the prefix", run.newest)};
  }
  // Only the newest commit's layout matters: outputs of other numbers of ranks must not block the checkpoint.
  const Layout& layout = copied.shifts.front().layout;
  const bool is_whole = layout.present == layout.world_size;
  if (is_whole || at_once) {
    if (!overtakes) comm::throw_if(check_no_later_start(run, copied.newest.incarnation));
    return {flush_available(options, environment, run, copied), true};
  }
  return {
      compose("{} of {} containers have been copied; waiting for the remaining nodes. If they are lost, run: kedge "
              "scavenge --finish {} --run {}",
              layout.present, layout.world_size, shell_word(run.prefix), run.name)};
}

/// A node copies before it tries the lock. Whoever has that looks once more when it is given back: so no copy is left
/// to a node that has looked before it was there.
std::string finish(const Options& options, const start::Environment& environment, const RecordedRun& before,
                   bool at_once, bool overtakes) {
  Finished done;
  while (true) {
    std::vector<std::string> seen;
    {
      const auto lock = lock_if_possible(environment, before, kLock);
      if (!lock && !done.words.empty()) return done.words;
      if (!lock) {
        return compose("another node is flushing; if it fails, run: kedge scavenge --finish {} --run {}",
                       shell_word(before.prefix), before.name);
      }
      // Another node may have finished it.
      const RecordedRun run = find_recorded_run(*environment.file_system, before.prefix, before.name);
      const Copied copied = read_copied(environment, run);
      Finished now = finish_once(options, environment, run, copied, at_once, overtakes);
      if (!done.flushed) done = std::move(now);
      seen = copied.nodes;
    }
    const std::vector<std::string> there = read_copied(environment, before).nodes;
    const auto was_seen = [&](const std::string& node) { return std::ranges::find(seen, node) != seen.end(); };
    if (std::ranges::all_of(there, was_seen)) return done.words;
  }
}

}  // namespace

std::string scavenge_store(const std::string& directory, const Options& options,
                           const start::Environment& environment) {
  fs::FileSystem& files = *environment.file_system;
  const store::StoreContent content =
      wait_until_free(*environment.clock, [&] { return store::read_store_content(files, directory); });
  if (!content.used_by.empty()) {
    refuse(ErrorCode::busy,
           compose("the store on node {} is in use by a job ({}); run kedge scavenge again after that job "
                   "has ended",
                   node_of(environment), content.used_by),
           directory);
  }
  if (content.record.run_id.is_none()) {
    refuse(ErrorCode::not_found, "not a Kedge store: the file 'run' is missing or invalid", directory);
  }
  const RecordedRun run = find_recorded_run_of(files, content.record);
  if (std::ranges::find(content.dead_starts, run.newest_start) != content.dead_starts.end()) {
    // Read by the node that finishes.
    persist::mark_ended(files, persist::records_directory(run.prefix, run.name), run.newest_start);
  }
  const std::uint64_t bytes = Copy(files, run, environment, directory).run();
  if (bytes == 0) {
    if (const std::string damage = describe_damage(environment.file_system, run, options); !damage.empty()) {
      throw Error(ErrorCode::corrupt, compose("{} is on the prefix, but damaged there ({}); keep the store: the next "
                                              "start repairs what it needs from it",
                                              run.newest, damage));
    }
    return run.newest.empty() ? "nothing to scavenge: the store has no checkpoint"
                              : compose("nothing to scavenge: {} is already on the prefix", run.newest);
  }
  return compose("copied {} to {}; {}", human_bytes(bytes), scavenge_directory(run),
                 finish(options, environment, run, false, false));
}

std::string finish_scavenge(const Options& options, const start::Environment& environment, bool overtakes) {
  fs::FileSystem& files = *environment.file_system;
  const RecordedRun run = find_recorded_run(files, options.persistent.path, options.run);
  if (!files.status(scavenge_directory(run))) return compose("no node of run '{}' has been copied yet", run.name);
  return finish(options, environment, run, true, overtakes);
}

}  // namespace kedge::drain
