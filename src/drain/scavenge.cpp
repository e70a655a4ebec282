#include "drain/scavenge.hpp"

#include <algorithm>
#include <cstddef>
#include <exception>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "base/attempt.hpp"
#include "base/checksum.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "comm/hosted/hosted_ranks.hpp"
#include "drain/flush_newest.hpp"
#include "drain/known_run.hpp"
#include "drain/placement.hpp"
#include "drain/survivors.hpp"
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

constexpr std::string_view kScavenged = "scavenged";
constexpr std::string_view kLock = "lock";

std::string place_of(const KnownRun& run) {
  return fs::join(persist::records_directory(run.prefix, run.name), kScavenged);
}

/// The store's name in the directory of a node: where a start of the run looks.
std::string store_name(const fs::FileSystem& files, const KnownRun& run) {
  store::Surroundings configured;
  configured.configured = ".";
  return store::directory_name(files.user(), configured, run.name, run.record.place_id);
}

/// One node's.
class Copy {
 public:
  Copy(fs::FileSystem& files, const KnownRun& run, const engine::Environment& environment, std::string store)
      : files_(files), run_(run), environment_(environment), store_(std::move(store)) {}

  /// Bytes that were copied; 0 if there was nothing newer than what is on the prefix.
  std::uint64_t run() {
    const std::vector<std::string> names = newer_files();
    if (names.empty()) return 0;
    require_space(names);
    fs::make_directories(files_, place_of(run_), 0700);
    const std::string partial = fs::join(place_of(run_), compose(".{}", node()));
    const auto failure = attempt([&] { copy_all(names, partial); });
    if (failure) {
      (void)attempt([&] { (void)fs::remove_tree(files_, partial); });
      throw Error(*failure);
    }
    const std::string whole = fs::join(place_of(run_), node());
    (void)fs::remove_tree(files_, whole);  // an earlier call's
    files_.rename(partial, whole);
    files_.sync_directory(place_of(run_));
    return bytes_;
  }

 private:
  /// Of this store, the same in each call.
  [[nodiscard]] std::string node() const {
    const std::string text = environment_.machine + store_;
    return compose("node-{:08x}", crc32c(std::as_bytes(std::span(text))));
  }

  [[nodiscard]] std::vector<std::string> newer_files() const {
    const store::RunDirectory here(environment_.file_system, {}, {store_, false}, LogicalRank{0},
                                   [] { return std::uint64_t{0}; });
    std::vector<std::string> names;
    for (const store::FileName& name : here.list()) {
      const store::Held held = store::inspect(here, name, run_.record.run_id, Verify::headers).held;
      if (held.key() && held.intact && held.generation() > run_.generation_there) names.push_back(to_string(name));
    }
    return names;
  }

  void require_space(const std::vector<std::string>& names) const {
    std::uint64_t needed = 0;
    for (const std::string& name : names) {
      if (const auto status = files_.status(fs::join(store_, name))) needed += status->size_bytes;
    }
    const fs::Space space = files_.space(run_.prefix);
    if (space.free_bytes >= needed) return;
    throw Error(Failure{ErrorCode::no_space,
                        compose("{} of this node's store are to be copied there, and {} are free ({}); free space and "
                                "call this again",
                                human_bytes(needed), human_bytes(space.free_bytes), space.limit),
                        -1, run_.prefix, 0});
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
    if (!copy)
      throw Error(Failure{ErrorCode::io, "another process writes here; call this once for each store", -1, to, 0});
    const std::uint64_t bytes = source->status().size_bytes;
    (void)fs::copy(*source, *copy, bytes);
    copy->sync();
    bytes_ += bytes;
  }

  fs::FileSystem& files_;
  const KnownRun& run_;
  const engine::Environment& environment_;
  std::string store_;
  std::uint64_t bytes_ = 0;
};

/// What all nodes copied so far.
struct Copied {
  std::vector<std::string> nodes;
  std::uint64_t generation = 0;  ///< the newest
  std::uint32_t world_size = 0;
  std::size_t present = 0;   ///< ranks of which a container of the newest is there
  std::vector<int> node_of;  ///< by rank, an index of `nodes`
};

Copied look(const engine::Environment& environment, const KnownRun& run) {
  fs::FileSystem& files = *environment.file_system;
  Copied copied;
  std::vector<std::pair<int, Survivor>> seen;
  if (!files.status(place_of(run))) return copied;
  for (const std::string& node : files.list(place_of(run))) {
    if (node == kLock || node.starts_with('.')) continue;
    const std::string store = fs::join(fs::join(place_of(run), node), store_name(files, run));
    if (!files.status(store) || !store::is_private(files, store)) continue;
    for (const Survivor& one : containers_in(environment.file_system, store, run.record.run_id)) {
      seen.emplace_back(static_cast<int>(copied.nodes.size()), one);
      if (one.generation <= copied.generation) continue;
      copied.generation = one.generation;
      copied.world_size = one.world_size;
    }
    copied.nodes.push_back(node);
  }
  std::vector<Sighting> sightings;
  std::set<std::uint32_t> ranks;
  for (const auto& [node, one] : seen) {
    if (one.generation != copied.generation || one.world_size != copied.world_size) continue;
    sightings.push_back({node, one.logical_rank});
    ranks.insert(one.logical_rank);
  }
  copied.present = ranks.size();
  copied.node_of = place_ranks(copied.world_size, static_cast<int>(copied.nodes.size()), sightings);
  return copied;
}

/// The copies stand for the nodes' stores: a start of the run in this process, whose ranks are threads.
std::optional<Flushed> flush_copied(const Options& given, const engine::Environment& environment, const KnownRun& run,
                                    const Copied& copied) {
  Options options = options_to_flush(given);
  options.run = run.name;
  options.persistent.path = run.prefix;
  options.redundancy = {};
  options.redundancy.every = 0;  // what is on the prefix needs no protection
  options.topology = {};
  options.store = {};
  options.store.on_exit = OnExit::remove_if_persistent;
  options.log.level = std::max(options.log.level, LogLevel::warning);  // where its stores are is nobody's concern
  comm::HostedRanks ranks(std::vector<int>(copied.world_size, 0), nullptr);
  std::optional<Flushed> flushed;
  const auto thrown = ranks.run([&](int rank, std::unique_ptr<Transport> transport) {
    const std::string& node = copied.nodes[static_cast<std::size_t>(copied.node_of[static_cast<std::size_t>(rank)])];
    Options own = options;
    own.store.path = fs::join(place_of(run), node);
    engine::Environment world = environment;
    world.node = node;
    world.machine = kScavenged;
    auto done = flush_newest(communicate_over(std::move(transport)), own, world);
    if (rank == 0) flushed = std::move(done);
  });
  for (const std::exception_ptr& one : thrown) {
    if (one) std::rethrow_exception(one);
  }
  return flushed;
}

void remove_copies(fs::FileSystem& files, const KnownRun& run, const Copied& copied) {
  for (const std::string& node : copied.nodes) (void)fs::remove_tree(files, fs::join(place_of(run), node));
}

std::string finish(const Options& options, const engine::Environment& environment, const KnownRun& before,
                   bool at_once) {
  fs::FileSystem& files = *environment.file_system;
  const std::string again = compose("kedge scavenge --finish {} --run {}", before.prefix, before.name);
  const auto lock = files.try_lock(fs::join(place_of(before), kLock), environment.machine);
  if (!lock) return compose("another node flushes what is on the prefix by now; if it does not: {}", again);
  const KnownRun run = find_run(files, before.prefix, before.name);  // another node may have finished
  const Copied copied = look(environment, run);
  if (copied.generation <= run.generation_there) {
    remove_copies(files, run, copied);
    return run.newest.empty() ? "nothing was copied from any node yet" : compose("{} is on the prefix", run.newest);
  }
  if (copied.present < copied.world_size && !at_once) {
    return compose("{} of {} containers are there; the others come with their nodes, and if they are lost: {}",
                   copied.present, copied.world_size, again);
  }
  const auto flushed = flush_copied(options, environment, run, copied);
  if (!flushed) return compose("no checkpoint of run '{}' can be recovered", run.name);
  remove_copies(files, run, copied);
  const std::string name = named(flushed->commit.tag, flushed->commit.generation);
  if (flushed->was_there) return compose("{} is the newest that can be recovered, and was on the prefix", name);
  return compose("flushed {}, {}: {}", name, human_bytes(flushed->total_bytes),
                 fs::join(run.prefix, persist::directory_name(flushed->commit)));
}

}  // namespace

std::string scavenge_store(const std::string& directory, const Options& options,
                           const engine::Environment& environment) {
  fs::FileSystem& files = *environment.file_system;
  const store::StoreContent content = store::content_of_store(files, directory);
  if (!content.used_by.empty()) {
    throw Error(
        Failure{ErrorCode::busy,
                compose("a job works with this store ({}); scavenge it when the job has ended", content.used_by), -1,
                directory, 0});
  }
  if (content.record.run_id.is_none()) {
    throw Error(Failure{ErrorCode::not_found, "no store of a run: it has no valid file 'run'", -1, directory, 0});
  }
  const KnownRun run = find_run_of(files, content.record);
  const std::uint64_t bytes = Copy(files, run, environment, directory).run();
  if (bytes == 0) {
    return run.newest.empty() ? "nothing to scavenge: the store has no checkpoint"
                              : compose("nothing to scavenge: {} is on the prefix", run.newest);
  }
  return compose("copied {} to {}; {}", human_bytes(bytes), place_of(run), finish(options, environment, run, false));
}

std::string finish_scavenge(const Options& options, const engine::Environment& environment) {
  fs::FileSystem& files = *environment.file_system;
  const KnownRun run = find_run(files, options.persistent.path, options.run);
  if (!files.status(place_of(run))) return compose("nothing was copied from any node of run '{}'", run.name);
  return finish(options, environment, run, true);
}

}  // namespace kedge::drain
