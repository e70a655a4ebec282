#include "start/start.hpp"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/attempt.hpp"
#include "base/options_fields.hpp"
#include "base/text.hpp"
#include "comm/calls.hpp"
#include "comm/reductions_check.hpp"
#include "format/hdf5_loaded.hpp"
#include "fs/file_system.hpp"
#include "persist/posix_prefix.hpp"
#include "start/continuation.hpp"
#include "start/fingerprint.hpp"
#include "start/full_prefix_advice.hpp"
#include "start/identity.hpp"
#include "start/sharing_check.hpp"
#include "start/store_io.hpp"
#include "start/store_warnings.hpp"
#include "store/job_record.hpp"

namespace kedge::start {
namespace {

constexpr unsigned kCopyThreadsMax = 4;  // more only compete for memory bandwidth

class Start {
 public:
  Start(const comm::Group& group, const Options& options, const Environment& environment, const Log& log)
      : group_(group), options_(options), environment_(environment), log_(log) {}

  StartResult run() {
    warn_of_launcher();
    group_.communicator().connect(group_.deadline());
    comm::require_correct_reductions(group_.communicator(), group_.deadline());
    check_options();
    find_nodes();
    share_cores();
    // A drain has the nodes that are left, and needs no protection on them to flush what they have.
    started_.assignment =
        redundancy::assign_redundancy_set(group_, started_.topology, options_.redundancy, environment_.is_drain);
    try {
      find_run();
      require_fingerprint();
      const Id128 nonce =
          require_shared_prefix(group_, {file_system_, options_.persistent.path, started_.run, environment_.mounts},
                                started_.topology, started_.prefix.start.get());
      decide_run();
      take_storage();
      announce();
      choose_store_io(group_, file_system_, options_, started_.node.store->space, log_);
      require_separate_stores(group_, {file_system_, started_.node.store->directory.path(), started_.run},
                              started_.topology, nonce);
      begin();
    } catch (const Error&) {
      withdraw();
      throw;
    }
    if (group_.is_root()) {
      if (const auto words = format::hdf5_warning(format::loaded_hdf5(), format::is_in_program())) {
        log_.warning(*words);
      }
    }
    return std::move(started_);
  }

 private:
  /// First: with another MPI's launcher, starts that take each other for the same job fail on what follows.
  void warn_of_launcher() const {
    const std::string words = group_.communicator().start_warning();
    if (group_.is_root() && !words.empty()) log_.warning(words);
  }

  void check_options() const {
    std::optional<Failure> local = options_.load_failure;
    if (!local) local = kedge::check_options(options_);
    comm::begin_call(group_, comm::Call::start, 0, local);

    const std::vector<FieldDigest> fields = option_digests(options_);
    std::vector<std::uint64_t> hashes;
    hashes.reserve(fields.size());
    for (const FieldDigest& field : fields) hashes.push_back(field.hash);
    if (const auto difference = group_.first_difference(hashes)) {
      throw Error(ErrorCode::invalid_argument,
                  compose("option {} differs between ranks {} and {}; give all ranks the same options",
                          fields[difference->index].name, difference->rank_a, difference->rank_b));
    }
  }

  void find_nodes() {
    std::string node;
    std::string domain;
    group_.run_on_all_ranks([&] {
      node = node_identity(environment_, group_.rank());
      domain = failure_domain(environment_, options_, group_.rank());
    });
    started_.topology = comm::find_topology(group_.communicator(), node, domain, group_.deadline());
    group_.run_on_all_ranks([&] { refuse_split_node(); });
  }

  /// A node's ranks share its store, so they are lost together.
  void refuse_split_node() const {
    for (const int other : started_.topology.node_ranks) {
      if (std::ranges::binary_search(started_.topology.domain_ranks, other)) continue;
      throw Error(ErrorCode::invalid_argument, compose("ranks {} and {} are on one node and in two failure domains "
                                                       "({}); give all ranks of a node the same failure domain",
                                                       std::min(group_.rank(), other), std::max(group_.rank(), other),
                                                       options_.topology.failure_domain));
    }
  }

  /// Simulated nodes share one machine and its cores.
  void share_cores() {
    started_.copy_threads = options_.store.copy_threads;
    if (started_.copy_threads != 0) return;
    const bool simulated = group_.any(simulates_nodes(environment_));
    const std::string& machine = environment_.machine;
    const auto sharers =
        simulated ? comm::find_topology(group_.communicator(), machine, machine, group_.deadline()).node_ranks.size()
                  : started_.topology.node_ranks.size();
    started_.copy_threads = std::clamp(environment_.cores / static_cast<unsigned>(sharers), 1U, kCopyThreadsMax);
  }

  void find_run() {
    known_ = start::find_run(group_, options_, environment_, log_, started_.prefix.start);
    if (group_.is_root()) started_.prefix.markers = std::make_unique<persist::PrefixMarkers>(*started_.prefix.start);
    started_.run = known_.run;
    started_.start_id = known_.launch_info.id;
    started_.prefix_path = known_.prefix;
    // Other nodes' processes may not have the variable.
    if (group_.is_root()) started_.job = batch_job(environment_.find_variable);
    group_.broadcast(started_.job);
  }

  /// The commits that there are must come from the same input. Those that only the stores know of are known later.
  void require_fingerprint() {
    group_.run_on_all_ranks([&] {
      if (!group_.is_root()) return;
      fingerprint_ = fingerprint_of(file_system_, options_);
      if (known_.has_commits) require_same_input();
    });
  }

  void require_same_input() const {
    require_same_fingerprint(known_.fingerprint, fingerprint_, known_.run.name, options_.start);
  }

  /// Whose commits count, and where the stores are to lie.
  void decide_run() {
    group_.run_on_all_ranks([&] {
      surroundings_ = {absolute_path(environment_, options_.store.path), node_name(environment_, group_.rank()),
                       environment_.store_candidates, simulates_nodes(environment_)};
      const store::StoreRoot root = store::choose_root(file_system_, surroundings_, known_.run.name, known_.prefix_id);
      root_ = root.directory;
      if (started_.topology.node_ranks.front() == group_.rank() && !root.warning.empty()) log_.warning(root.warning);
      open_prefix_storage();
    });
    warn_of_missing_roots(group_,
                          {!surroundings_.configured.empty(), started_.topology.node_ranks.front() == group_.rank(),
                           surroundings_.node, root_},
                          log_);
    ids_ = decide_ids(
        group_, options_, known_,
        {file_system_, started_.prefix.start.get(), *started_.prefix.storage.reader, root_, surroundings_, log_});
    started_.run.id = ids_.run_id;
    started_.commit_evidence.on_prefix = known_.has_commits && options_.start != StartMode::fresh;
  }

  void take_storage() {
    // Ranks wait for locks one by one; the vote must outlast the longest such wait.
    const comm::Group patient =
        group_.with_timeout(group_.timeout() + comm::Group::Seconds(options_.store.lock_timeout_s));
    patient.run_on_all_ranks([&] {
      const auto not_taken = attempt([&] { take_store(); });
      // Once more: a start that began at the same time may have written down only now who it is, and hold the store.
      if (group_.is_root() && !environment_.is_drain)
        require_may_continue(options_, *started_.prefix.start, known_.launch_info);
      comm::throw_if(not_taken);
      store::StoreRecordFiles& records = *started_.node.records;
      if (!records.is_owned_by(ids_.run_id, ids_.prefix_id)) records.write_owner(owner());
      else records.add_prefix_paths(owner());
      if (!environment_.is_drain) record_job();
      started_.commit_evidence.in_store = records.has_commit_marker(started_.run.id);
    });
    // Any one note is enough: the prefix may have lost its records, nodes may be new.
    started_.commits_exist = group_.any(started_.commit_evidence.on_prefix || started_.commit_evidence.in_store);
    if (!started_.commits_exist) return;
    stores_know_ = group_.any(started_.commit_evidence.in_store);
    group_.run_on_all_ranks([&] {
      if (group_.is_root()) require_same_input();
    });
    if (!group_.is_root() || known_.fingerprint || fingerprint_.empty()) return;
    log_.warning(
        compose("no fingerprint is recorded for the checkpoints of run '{}'; from now on the current input's is",
                started_.run.name));
  }

  /// Local.
  void open_prefix_storage() {
    started_.prefix.storage =
        persist::posix_prefix_storage(environment_.file_system, file_system_.canonical(options_.persistent.path),
                                      options_.persistent, started_.prefix.start.get());
  }

  /// Local. Waits for the store's lock.
  void take_store() {
    const Options::Store& options = options_.store;
    store::StoreLocation location = locate_store();
    if (options.durable) fs::sync_parent_directories(file_system_, location.directory);
    const LogicalRank mine = group_.logical_rank();
    NodeHandles& node = started_.node;
    node.owner = owner();
    lock_store_left_behind();
    node.lock = lock(location.directory);
    node.records = std::make_unique<store::StoreRecordFiles>(environment_.file_system, location, mine);
    node.store = std::make_unique<store::NodeStore>(environment_.file_system, options, std::move(location), mine,
                                                    started_.topology.node_ranks);
    node.store->remove_leftovers();
  }

  /// Local. That it is in use is a reason not to begin; that it is full, or gone by now, is none.
  void lock_store_left_behind() {
    const auto left_behind = store_left_behind();
    const auto failure = attempt([&] {
      if (left_behind) left_behind_ = lock(*left_behind);
    });
    if (failure && failure->code == ErrorCode::busy) throw Error(*failure);
  }

  /// Local. Waits for earlier starts that use this store.
  [[nodiscard]] std::unique_ptr<store::StoreLock> lock(const std::string& directory) const {
    return std::make_unique<store::StoreLock>(environment_.file_system, directory, started_.run.incarnation,
                                              group_.rank(), *environment_.clock, options_.store.lock_timeout_s,
                                              [&](const std::string& holder) { log_waiting(holder); });
  }

  /// For who frees what jobs left. No job fails for it, and a store without this note stays.
  void record_job() const {
    (void)attempt([&] { store::record_job(file_system_, started_.node.records->directory(), started_.job); });
  }

  void log_waiting(const std::string& holder) const {
    if (!group_.is_root()) return;
    log_.info(
        compose("run '{}': waiting up to {:.0f} s for an earlier start of it to release the node-local store ({})",
                started_.run.name, options_.store.lock_timeout_s, holder));
  }

  [[nodiscard]] store::StoreOwner owner_of(const RunIds& ids) const {
    return {started_.run.name, ids.run_id, ids.prefix_id, known_.prefix, known_.former_prefixes};
  }

  /// Owner of the store, for its record.
  [[nodiscard]] store::StoreRecord owner() const {
    store::StoreRecord record{ids_.run_id, ids_.prefix_id, known_.prefix, {}};
    if (known_.given_prefix != known_.prefix) record.prefix_paths = {known_.given_prefix};
    return record;
  }

  [[nodiscard]] store::StoreLocation locate_store() const {
    store::StoreLocation location = store::find_or_make_store(file_system_, root_, surroundings_, owner_of(ids_));
    if (options_.store.durable && location.memory_backed) {
      refuse(ErrorCode::invalid_argument,
             "store.durable is set and the store lies in memory, which survives no power loss; set "
             "store.path to block storage or store.durable to false",
             location.directory);
    }
    return location;
  }

  /// This start has all that it needs: from now on it is the run's newest.
  void begin() {
    group_.run_on_all_ranks([&] {
      if (!group_.is_root()) return;
      with_full_prefix_advice([&] {
        if (environment_.is_drain) started_.prefix.start->mark_drain();
        write_identity(*started_.prefix.start, known_, ids_,
                       {fingerprint_, store_to_record(), options_.start == StartMode::fresh});
      });
    });
    if (left_behind_) (void)attempt([&] { left_behind_->release(); });
    // Lock files that stay are removed by the next start.
    if (!environment_.is_drain) (void)attempt([&] { started_.node.lock->remove_older(); });
    if (known_.former_prefixes.empty()) return;
    // Stores moved with the prefix: the place where that lay may be another job's by now. Not before the prefix says
    // that it moved: a start that fails in between leaves stores that are found from both places.
    group_.run_on_all_ranks([&] { started_.node.records->write_owner(owner()); });
  }

  /// Rank 0's. Others than the last ones are recorded once a commit was made or opened there (CommitMarkers).
  [[nodiscard]] const std::string& store_to_record() {
    const bool has_older = started_.commits_exist && options_.start != StartMode::fresh && !known_.store.empty();
    const std::string& own = started_.node.store->directory.path();
    started_.commit_evidence.store_recorded = !has_older || known_.store == own;
    return has_older ? known_.store : own;
  }

  /// The first line of every start: a job that dies has said where its checkpoints are.
  void announce() const {
    if (!group_.is_root()) return;
    log_.info(compose("run '{}', incarnation {}, on {}{}, store {}{}: {}", started_.run.name, started_.run.incarnation,
                      known_.prefix, moved_from(), started_.node.store->directory.path(),
                      has_other_nodes() ? " and one on each other node" : "", describe_found_stores()));
    log_store_left_behind();
    if (!environment_.is_drain) warn_of_scavenged_stores(file_system_, started_.prefix.start->directory(), log_);
    redundancy::log_automatic_scheme(started_.topology, options_.redundancy, log_);
  }

  /// The store of the run that start = fresh leaves behind, if it is here.
  [[nodiscard]] std::optional<std::string> store_left_behind() const {
    if (options_.start != StartMode::fresh || known_.prefix_id.is_none()) return std::nullopt;
    const RunIds before{known_.run.id, known_.prefix_id};
    std::optional<std::string> directory;
    (void)attempt([&] { directory = store::find_store(file_system_, root_, surroundings_, owner_of(before)); });
    return directory;
  }

  /// Nobody uses the memory that start = fresh leaves behind, and nobody else says so.
  void log_store_left_behind() const {
    if (!known_.left_behind_warning.empty()) log_.info(known_.left_behind_warning);
    const auto directory = store_left_behind();
    if (!directory) return;
    log_.info(compose("the earlier checkpoints stay in the node-local store{}; to free it: kedge drop {}",
                      has_other_nodes() ? ", here and on the other nodes" : "", shell_word(*directory)));
  }

  [[nodiscard]] bool has_other_nodes() const {
    return started_.topology.node_ranks.size() < static_cast<std::size_t>(group_.size());
  }

  [[nodiscard]] std::string moved_from() const {
    if (known_.moved_from.empty()) return {};
    return compose(" ({} {})", known_.is_copy ? "a copy of" : "moved here from", known_.moved_from);
  }

  [[nodiscard]] std::string describe_found_stores() const {
    if (options_.start == StartMode::fresh)
      return "starts over, ignoring earlier checkpoints (KEDGE_START=fresh; unset it for the next start)";
    const bool on_prefix = started_.commit_evidence.on_prefix || ids_.from_manifests;
    if (!started_.commits_exist && !on_prefix) return "no checkpoints yet, starts from scratch";
    if (!on_prefix) return "has checkpoints in the stores";
    if (stores_know_) return "has checkpoints" + other_store();
    return compose("has checkpoints; all its stores are new{}, so only those that were flushed are available",
                   store_before());
  }

  /// Checkpoints that were not flushed are there, unless that node is gone.
  [[nodiscard]] std::string store_before() const {
    if (known_.store.empty() || known_.store == started_.node.store->directory.path()) return {};
    return compose(" (rank 0's was {} at the last start)", known_.store);
  }

  /// Checkpoints were made there while these stores, which have older ones, were not used.
  [[nodiscard]] std::string other_store() const {
    if (known_.store.empty() || known_.store == started_.node.store->directory.path()) return {};
    bool is_here = false;
    (void)attempt([&] { is_here = file_system_.status(known_.store).has_value(); });
    if (!is_here) return {};
    return compose("; rank 0's store was {} at the last start and may have newer ones", known_.store);
  }

  /// Local. A start that failed must not make the one that runs think that it was replaced.
  void withdraw() const {
    if (started_.prefix.start) (void)attempt([&] { started_.prefix.start->withdraw(); });
    if (started_.node.lock) (void)attempt([&] { started_.node.lock->release(); });
    if (left_behind_) (void)attempt([&] { left_behind_->release(); });
  }

  const comm::Group& group_;
  const Options& options_;
  const Environment& environment_;
  const Log& log_;
  fs::FileSystem& file_system_ = *environment_.file_system;
  KnownRun known_;
  store::LocationOptions surroundings_;
  std::string root_;
  std::string fingerprint_;  ///< what this job gives; rank 0's
  RunIds ids_;
  std::unique_ptr<store::StoreLock>
      left_behind_;           ///< on the store that start = fresh leaves: nobody works there any more
  bool stores_know_ = false;  ///< a store says that commits of the run exist
  StartResult started_;
};

}  // namespace

StartResult start(const comm::Group& group, const Options& options, const Environment& environment, const Log& log) {
  return Start(group, options, environment, log).run();
}

}  // namespace kedge::start
