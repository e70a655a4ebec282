#include "engine/start.hpp"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/attempt.hpp"
#include "base/options_fields.hpp"
#include "base/random.hpp"
#include "base/text.hpp"
#include "engine/calls.hpp"
#include "engine/proof.hpp"
#include "engine/store_io.hpp"
#include "fs/durable_path.hpp"
#include "persist/posix_tier.hpp"

namespace kedge::engine {
namespace {

constexpr unsigned kCopyThreadsMax = 4;  // more only compete for memory bandwidth

class Start {
 public:
  Start(const Setup& setup, const comm::Group& group)
      : setup_(setup), group_(group), file_system_(*setup.environment.file_system) {}

  Started run() {
    group_.communicator().connect(group_.deadline());
    check_options();
    find_nodes();
    share_cores();
    started_.assignment = redundancy::assign_set(group_, started_.topology, setup_.options.redundancy, setup_.log);
    try {
      take_incarnation();
      const Id128 nonce = prove_prefix(group_, {file_system_, setup_.options.persistent.path, started_.run},
                                       started_.prefix.records.get());
      take_storage();
      choose_store_io(group_, file_system_, setup_.options.store, *started_.node.store, setup_.log);
      prove_stores(group_, {file_system_, started_.node.store->directory(), started_.run}, started_.topology, nonce);
      settle_identity();
    } catch (const Error&) {
      withdraw();
      throw;
    }
    if (group_.communicator().thread_support() == ThreadSupport::single && group_.is_root()) {
      setup_.log.info(
          "the communicator may be used by one thread alone (MPI_THREAD_SINGLE): all work runs inside the engine's "
          "calls");
    }
    return std::move(started_);
  }

 private:
  void check_options() const {
    std::optional<Failure> local = setup_.options.load_failure;
    if (!local) local = check(setup_.options);
    enter(group_, Call::start, 0, local);

    const std::vector<FieldDigest> fields = digest(setup_.options);
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
    group_.together([&] {
      node = node_identity(setup_.environment, setup_.options, group_.rank());
      domain = failure_domain(setup_.environment, setup_.options, group_.rank());
    });
    started_.topology = comm::find_topology(group_.communicator(), node, domain, group_.deadline());
    group_.together([&] { refuse_split_node(); });
  }

  /// A node's ranks share its store, so they are lost together.
  void refuse_split_node() const {
    for (const int other : started_.topology.node) {
      if (std::ranges::binary_search(started_.topology.domain, other)) continue;
      throw Error(ErrorCode::invalid_argument,
                  compose("ranks {} and {} are on one node and in two failure domains ({}); give all ranks of a node "
                          "the same failure domain",
                          std::min(group_.rank(), other), std::max(group_.rank(), other),
                          setup_.options.topology.failure_domain));
    }
  }

  /// Simulated nodes share one machine and its cores.
  void share_cores() {
    started_.copy_threads = setup_.options.store.copy_threads;
    if (started_.copy_threads != 0) return;
    const Environment& environment = setup_.environment;
    const bool simulated = group_.any(simulates_nodes(environment, setup_.options));
    const std::string& machine = environment.machine;
    const auto sharers =
        simulated ? comm::find_topology(group_.communicator(), machine, machine, group_.deadline()).node.size()
                  : started_.topology.node.size();
    started_.copy_threads = std::clamp(environment.cores / static_cast<unsigned>(sharers), 1U, kCopyThreadsMax);
  }

  /// Rank 0 takes it on the prefix.
  void take_incarnation() {
    group_.together([&] {
      if (!group_.is_root()) return;
      const Options::Persistent& options = setup_.options.persistent;
      started_.prefix.records = std::make_unique<persist::RunRecords>(setup_.environment.file_system, options.path,
                                                                      setup_.options.run, group_.communicator().name());
      persist::RunRecords& records = *started_.prefix.records;
      started_.run = {records.run(), {}, records.take_incarnation()};
      started_.run.id = records.run_id().value_or(Id128{});
      started_.noted.on_prefix = records.has_first_commit() || records.has_first_manifest();
    });
    group_.broadcast(started_.run.name);
    group_.broadcast(started_.run.id);
    group_.broadcast(started_.run.incarnation);
    group_.broadcast(started_.noted.on_prefix);
  }

  void take_storage() {
    // Ranks wait for locks one by one; the vote must outlast the longest such wait.
    const comm::Group patient =
        group_.with_timeout(group_.timeout() + comm::Group::Seconds(setup_.options.store.lock_timeout_s));
    patient.together([&] {
      open_tier();
      take_store();
    });
  }

  /// Local.
  void open_tier() {
    started_.prefix.tier = std::make_unique<persist::PosixTier>(
        setup_.environment.file_system, file_system_.canonical(setup_.options.persistent.path),
        setup_.options.persistent, started_.prefix.records.get());
  }

  /// Local. Waits for the store's lock.
  void take_store() {
    const Environment& environment = setup_.environment;
    const Options::Store& options = setup_.options.store;
    store::Location location = locate_store();
    if (options.durable) fs::sync_path(file_system_, location.directory);
    const LogicalRank mine = group_.logical_rank();
    NodeLocal& node = started_.node;
    node.lock =
        std::make_unique<store::StoreLock>(environment.file_system, location.directory, started_.run.incarnation,
                                           group_.rank(), *environment.clock, options.lock_timeout_s);
    node.records = std::make_unique<store::NodeRecords>(environment.file_system, location, mine);
    node.store = std::make_unique<store::NodeStore>(environment.file_system, options, std::move(location), mine);
    node.store->take_charge_of(started_.topology.node);
    node.store->sweep();
  }

  [[nodiscard]] store::Location locate_store() const {
    const Environment& environment = setup_.environment;
    const store::Surroundings surroundings{setup_.options.store.path,
                                           node_name(environment, setup_.options, group_.rank()),
                                           environment.store_candidates, simulates_nodes(environment, setup_.options)};
    store::Location location = store::locate(file_system_, surroundings, started_.run.name);
    if (setup_.options.store.durable && location.memory_backed) {
      throw Error(Failure{ErrorCode::invalid_argument,
                          "store.durable is set and the store lies in memory, which survives no power loss; set "
                          "store.path to block storage or store.durable to false",
                          -1, location.directory, 0});
    }
    return location;
  }

  /// The run's id: from the prefix, else from the lowest rank whose store knows one, else from manifests of the run's
  /// name, else a new one. And whether commits of it exist.
  void settle_identity() {
    Id128 in_store;
    group_.together([&] { in_store = started_.node.records->run_id(); });
    if (started_.run.id.is_none()) {
      if (const auto speaker = group_.lowest_with(!in_store.is_none())) {
        started_.run.id = in_store;
        group_.broadcast(started_.run.id, *speaker);
      } else {
        started_.run.id = group_.root_decides([&] {
          const Id128 known = run_id_of_manifests();
          return known.is_none() ? random_id() : known;
        });
      }
    }
    group_.together([&] { write_identity(in_store); });
    // Any one note is enough: the prefix may have lost its records, nodes may be new.
    started_.commits_exist = group_.any(started_.noted.on_prefix || started_.noted.in_store);
  }

  /// Local, rank 0. Whose the manifests under this run's name are, if all records of it were lost; none if there are
  /// none. Others may use the name as well, or pretend to; one of this user's that is not trusted stops the start.
  [[nodiscard]] Id128 run_id_of_manifests() const {
    persist::Tier& tier = *started_.prefix.tier;
    std::optional<Failure> refused;
    for (const persist::TagEntry& entry : tier.list().entries) {
      if (entry.run != started_.run.name) continue;
      auto failure = attempt([&] { tier.require_trusted(entry); });
      if (!failure) return entry.commit.run_id;
      if (tier.is_own(entry) && !refused) refused = std::move(failure);
    }
    comm::throw_if(refused);
    return {};
  }

  void write_identity(const Id128& in_store) {
    store::NodeRecords& in_node = *started_.node.records;
    if (in_store != started_.run.id) in_node.write_run_id(started_.run.id);
    started_.noted.in_store = in_node.tells_of_commit(started_.run.id);
    if (!started_.prefix.records) return;
    persist::RunRecords& on_prefix = *started_.prefix.records;
    if (!on_prefix.run_id()) on_prefix.write_run_id(started_.run.id);
    on_prefix.begin_incarnation();
    on_prefix.remove_nonces();
  }

  /// Local. A start that failed must not make the one that runs think that it was replaced.
  void withdraw() const {
    if (started_.prefix.records) (void)attempt([&] { started_.prefix.records->withdraw_incarnation(); });
    if (started_.node.lock) (void)attempt([&] { started_.node.lock->release(); });
  }

  const Setup& setup_;
  const comm::Group& group_;
  fs::FileSystem& file_system_;
  Started started_;
};

}  // namespace

Started start(const Setup& setup, const comm::Group& group) { return Start(setup, group).run(); }

}  // namespace kedge::engine
