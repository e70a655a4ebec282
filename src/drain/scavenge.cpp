#include "drain/scavenge.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "base/attempt.hpp"
#include "base/text.hpp"
#include "comm/group.hpp"
#include "comm/hosted/hosted_ranks.hpp"
#include "drain/flush_newest.hpp"
#include "drain/newest_first.hpp"
#include "drain/node_copies.hpp"
#include "drain/placement.hpp"
#include "drain/recorded_run.hpp"
#include "drain/stores_content.hpp"
#include "fs/tree.hpp"
#include "persist/prefix_runs.hpp"
#include "persist/tag_directory.hpp"
#include "store/location.hpp"
#include "store/store_removal.hpp"

namespace kedge::drain {
namespace {

constexpr std::string_view kLock = "lock";

/// The containers copied from all nodes so far.
struct Copied {
  std::vector<std::string> nodes;
  StoredContainer newest;                ///< the newest one
  std::vector<FlushPass> passes;         ///< with hosts as indexes into `nodes`
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
  copied.passes = plan_flush_passes(missing, static_cast<int>(copied.nodes.size()));
  return copied;
}

/// The copies stand for the nodes' stores: a start of the run in this process, whose ranks are threads. Flushes the
/// newest checkpoint, if it has this generation, and the outputs; without a generation only outputs.
Flushed flush_copied(const Options& given, const start::Environment& environment, const RecordedRun& run,
                     const Copied& copied, const FlushPass& pass, std::optional<std::uint64_t> at_least) {
  Options options = options_to_flush(given);
  options.run = run.name;
  options.persistent.path = run.prefix;
  options.redundancy = {};
  options.redundancy.every = 0;  // persistent commits need no protection
  options.topology = {};
  options.store = {};
  options.events.path.clear();
  options.log.level = std::max(options.log.level, LogLevel::warning);  // these stores' paths would confuse users
  comm::HostedRanks ranks(std::vector<int>(pass.layout.world_size, 0), nullptr);
  const std::vector<Tag> tags = tags_of(copied.outputs, pass.outputs);
  Flushed flushed;
  const auto start = [&](int rank, std::unique_ptr<Transport> transport) {
    const int place = pass.layout.hosts[static_cast<std::size_t>(rank)];
    const std::string& node = copied.nodes[static_cast<std::size_t>(place)];
    Options own = options;
    own.store.path = fs::join(scavenge_directory(run), node);
    start::Environment world = environment;
    world.node = node;
    world.machine = "scavenged";
    auto communicator = make_communicator(std::move(transport));
    Flushed done = at_least ? flush_newest(std::move(communicator), own, world, *at_least)
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

struct Results {
  std::vector<std::optional<Flushed>> of_passes;  ///< nothing of those that failed, or were not tried
  Search search;

  [[nodiscard]] const Flushed* found() const { return search.found ? &*of_passes[*search.found] : nullptr; }
  [[nodiscard]] std::uint64_t outputs() const {
    std::uint64_t sum = 0;
    for (const auto& one : of_passes) sum += one.value_or(Flushed{}).outputs;
    return sum;
  }
};

/// Flushes the newest checkpoint that can be recovered, and all outputs.
Results flush_all(const Options& options, const start::Environment& environment, const RecordedRun& run,
                  const Copied& copied) {
  const auto& passes = copied.passes;
  Results results{std::vector<std::optional<Flushed>>(passes.size()), {}};
  const auto flush = [&](std::size_t pass, std::optional<std::uint64_t> at_least) {
    Flushed now = flush_copied(options, environment, run, copied, passes[pass], at_least);
    now.outputs += results.of_passes[pass].value_or(Flushed{}).outputs;
    results.of_passes[pass] = now;
    return now;
  };
  results.search = flush_newest_of(run.there, passes, [&](std::size_t pass, std::uint64_t at_least) {
    const Flushed now = flush(pass, at_least);
    return Tried{now.commit ? now.commit->generation : 0, now.is_flushed, now.was_there};
  });
  for (std::size_t pass = 0; pass < passes.size(); ++pass) {
    if (!results.of_passes[pass] && !passes[pass].outputs.empty()) (void)flush(pass, std::nullopt);
  }
  return results;
}

/// Throws corrupt if it is damaged on the prefix.
std::string newest_is_there(const Options& options, const start::Environment& environment, const RecordedRun& run) {
  if (const std::string damage = describe_damage(environment.file_system, run, options); !damage.empty()) {
    throw Error(ErrorCode::corrupt, compose("{} is on the prefix, but damaged there ({}); keep the stores: the next "
                                            "start repairs what it needs from them",
                                            run.newest, damage));
  }
  return compose("{} is the newest that can be recovered, and is already on the prefix", run.newest);
}

std::string describe_result(const Options& options, const start::Environment& environment, const RecordedRun& run,
                            const Copied& copied, const Results& results) {
  const std::string outputs = outputs_of(results.outputs());
  const Flushed* found = results.found();
  if (found == nullptr && !copied.passes.front().with_checkpoint()) {
    if (outputs.empty()) return "the outputs that are not on the prefix cannot be recovered from the copies";
    const std::string there = run.newest.empty() ? "" : compose("{} is already on the prefix; and", run.newest);
    return there.empty() ? compose("flushed{}", outputs) : there + outputs;
  }
  std::string words;
  if (found == nullptr) {
    words = newest_is_there(options, environment, run);
  } else {
    const std::string name = commit_text(found->commit->tag, found->commit->generation);
    words = found->was_there ? compose("{} is the newest that can be recovered, and is already on the prefix", name)
                             : compose("flushed {}, {}: {}", name, human_bytes(found->total_bytes),
                                       fs::join(run.prefix, persist::tag_directory_name(*found->commit)));
  }
  if (!outputs.empty()) words += compose("; and{}", outputs);
  return words;
}

std::string flush_available(const Options& options, const start::Environment& environment, const RecordedRun& run,
                            const Copied& copied) {
  const Results results = flush_all(options, environment, run, copied);
  comm::throw_if(results.search.failure);
  const std::string words = describe_result(options, environment, run, copied, results);
  const std::uint64_t newest = copied.passes.front().newest_checkpoint;
  const bool lacks_checkpoint = results.found() == nullptr ? newest != 0 : newest > results.found()->commit->generation;
  bool lacks_outputs = false;
  for (std::size_t pass = 0; pass < copied.passes.size(); ++pass) {
    const std::uint64_t flushed = results.of_passes[pass].value_or(Flushed{}).outputs;
    lacks_outputs = lacks_outputs || flushed < copied.passes[pass].outputs.size();
  }
  if (lacks_checkpoint || lacks_outputs) {
    return words +
           compose("; the copies are kept, because they have parts of {}: scavenge the missing nodes, or remove {}",
                   lacks_checkpoint ? compose("generation {}", newest) : std::string("incomplete outputs"),
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
  // Outputs of other numbers of ranks must not block the checkpoint.
  const Layout& layout = copied.passes.front().layout;
  const bool is_whole = std::ranges::any_of(copied.passes, [&](const FlushPass& pass) {
    return pass.layout.present == pass.layout.world_size &&
           (pass.with_checkpoint() || !copied.passes.front().with_checkpoint());
  });
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
  const std::uint64_t bytes = copy_store(environment, run, directory);
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
