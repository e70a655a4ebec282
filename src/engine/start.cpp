// How an engine comes to life: one step after another, each voted on, so that all ranks start or none.
#include <algorithm>
#include <array>
#include <span>

#include "base/attempt.hpp"
#include "base/options_fields.hpp"
#include "base/random.hpp"
#include "base/text.hpp"
#include "engine/context.hpp"
#include "engine/proof.hpp"
#include "engine/protector.hpp"
#include "engine/store_io.hpp"
#include "fs/durable_path.hpp"

namespace kedge::engine {
namespace {

void check_options(Context& context) {
  std::optional<Failure> local = context.options.load_failure;
  if (!local) local = check(context.options);
  context.enter(Call::start, 0, local);

  const std::vector<FieldDigest> fields = digest(context.options);
  std::vector<std::uint64_t> hashes;
  hashes.reserve(fields.size());
  for (const FieldDigest& field : fields) hashes.push_back(field.hash);
  if (const auto difference = comm::first_difference(*context.comm, hashes, context.deadline())) {
    throw Error(ErrorCode::invalid_argument,
                compose("option {} differs between ranks {} and {}; give all ranks the same options",
                        fields[difference->index].name, difference->rank_a, difference->rank_b));
  }
}

/// A node's ranks share its store, so they are lost together.
void refuse_split_node(const Context& context) {
  for (const int other : context.topology.node) {
    if (std::ranges::binary_search(context.topology.domain, other)) continue;
    throw Error(ErrorCode::invalid_argument,
                compose("ranks {} and {} are on one node and in two failure domains ({}); give all ranks of a node the "
                        "same",
                        std::min(context.rank(), other), std::max(context.rank(), other),
                        context.options.topology.failure_domain));
  }
}

void find_nodes(Context& context) {
  std::string node;
  std::string domain;
  const auto named = attempt([&] {
    node = node_identity(context.environment, context.options, context.rank());
    domain = failure_domain(context.environment, context.options, context.rank());
  });
  comm::throw_if(context.vote(named));
  context.topology = comm::find_topology(*context.comm, node, domain, context.deadline());
  comm::throw_if(context.vote(attempt([&] { refuse_split_node(context); })));
}

constexpr unsigned kCopyThreadsMax = 4;  // more than these share one memory

/// COLLECTIVE. Several nodes may be simulated on one machine; its cores are there once.
void share_cores(Context& context) {
  context.copy_threads = context.options.store.copy_threads;
  if (context.copy_threads != 0) return;
  std::uint64_t simulated = simulates_nodes(context.environment, context.options) ? 1 : 0;
  context.comm->all_reduce(std::span(&simulated, 1), Reduction::max, context.deadline());
  const std::string& machine = context.environment.machine;
  const auto sharers = simulated == 0
                           ? context.topology.node.size()
                           : comm::find_topology(*context.comm, machine, machine, context.deadline()).node.size();
  context.copy_threads = std::clamp(context.environment.cores / static_cast<unsigned>(sharers), 1U, kCopyThreadsMax);
}

/// What rank 0 learns on the prefix.
struct PrefixFacts {
  std::array<char, 128> run{};
  std::uint64_t incarnation = 0;
  Id128 run_id;
  std::uint8_t commit_noted = 0;
};

void take_incarnation(Context& context) {
  PrefixFacts facts;
  std::optional<Failure> local;
  if (context.is_root()) {
    local = attempt([&] {
      context.catalog = std::make_unique<persist::Catalog>(
          context.environment.file_system, context.options.persistent.path, context.options.run, context.comm->name());
      context.prefix = std::make_unique<persist::Prefix>(context.environment.file_system, *context.catalog,
                                                         context.options.persistent);
      facts.incarnation = context.catalog->take_incarnation();
      facts.run_id = context.catalog->run_id().value_or(Id128{});
      facts.commit_noted = context.catalog->has_first_commit() || context.catalog->has_first_manifest() ? 1 : 0;
      const std::string& run = context.catalog->run();
      std::copy_n(run.begin(), std::min(run.size(), facts.run.size() - 1), facts.run.begin());
    });
  }
  comm::throw_if(context.vote(local));
  context.broadcast(facts);
  context.run = facts.run.data();
  context.incarnation = facts.incarnation;
  context.run_id = facts.run_id;
  context.noted_on_prefix = facts.commit_noted != 0;
}

void take_store(Context& context) {
  const auto local = attempt([&] {
    fs::FileSystem& file_system = *context.environment.file_system;
    context.prefix_path = file_system.canonical(context.options.persistent.path);
    context.tier = std::make_unique<persist::PosixTier>(context.environment.file_system, context.prefix_path,
                                                        context.options.persistent);
    const store::Surroundings surroundings{
        context.options.store.path, node_name(context.environment, context.options, context.rank()),
        context.environment.store_candidates, simulates_nodes(context.environment, context.options)};
    store::Location location = store::locate(file_system, surroundings, context.run);
    if (context.options.store.durable && location.memory_backed) {
      throw Error(Failure{ErrorCode::invalid_argument,
                          "store.durable is asked for and the store lies in memory, which no power loss survives; set "
                          "store.path to block storage or store.durable to false",
                          -1, location.directory, 0});
    }
    if (context.options.store.durable) fs::sync_path(file_system, location.directory);
    context.lock = std::make_unique<store::StoreLock>(context.environment.file_system, location.directory,
                                                      context.incarnation, context.rank(), *context.environment.clock,
                                                      context.options.store.lock_timeout_s);
    const LogicalRank mine = context.logical_rank();
    context.records = std::make_unique<store::NodeRecords>(context.environment.file_system, location, mine);
    context.store = std::make_unique<store::NodeStore>(context.environment.file_system, context.options.store,
                                                       std::move(location), mine);
    context.store->take_charge_of(context.topology.node);
    context.store->sweep();
  });
  // Ranks wait for locks one by one; the vote must outlast the longest such wait.
  const auto patience =
      std::chrono::duration<double>(context.options.comm.timeout_s + context.options.store.lock_timeout_s);
  comm::throw_if(comm::vote(*context.comm, local, Deadline::after(patience)));
}

/// Local, rank 0. Whose the manifests under this run's name are, if all records of it were lost; none if there are
/// none. Others may use the name as well, or pretend to; one of this user's that is not trusted stops the start.
Id128 run_id_of_manifests(const Context& context) {
  fs::FileSystem& file_system = *context.environment.file_system;
  std::optional<Failure> refused;
  for (const auto& entry : persist::list_tags(file_system, context.catalog->prefix()).entries) {
    if (entry.run != context.run) continue;
    const std::string directory = context.prefix->path_of(entry.directory);
    auto failure = attempt([&] { persist::require_trusted(file_system, directory, context.options.persistent.trust); });
    if (!failure) return entry.commit.run_id;
    const auto status = file_system.status(directory);
    if (status && status->owner == file_system.user() && !refused) refused = std::move(failure);
  }
  comm::throw_if(refused);
  return {};
}

/// The run's UUID: from the prefix, else from the lowest rank whose store knows one, else from manifests of the run's
/// name, else a new one. And whether commits of it exist.
void settle_identity(Context& context) {
  Id128 in_store;
  const auto local = attempt([&] { in_store = context.records->run_id(); });
  comm::throw_if(context.vote(local));
  if (context.run_id.is_none()) {
    const auto nobody = static_cast<std::uint64_t>(context.comm->size());
    std::uint64_t knows = in_store.is_none() ? nobody : static_cast<std::uint64_t>(context.rank());
    context.comm->all_reduce(std::span(&knows, 1), Reduction::min, context.deadline());
    const int speaker = knows == nobody ? 0 : static_cast<int>(knows);
    const auto drawn = attempt([&] {
      context.run_id = in_store;
      if (knows == nobody && context.catalog) context.run_id = run_id_of_manifests(context);
      if (knows == nobody && context.run_id.is_none()) context.run_id = random_id();
    });
    comm::throw_if(context.vote(drawn));
    context.comm->broadcast(std::as_writable_bytes(std::span(&context.run_id, 1)), speaker, context.deadline());
  }
  const auto written = attempt([&] {
    if (in_store != context.run_id) context.records->write_run_id(context.run_id);
    context.noted_in_store = context.records->tells_of_commit(context.run_id);
    if (!context.catalog) return;
    if (!context.catalog->run_id()) context.catalog->write_run_id(context.run_id);
    context.catalog->begin_incarnation();
    context.catalog->remove_nonces();
  });
  comm::throw_if(context.vote(written));
  // Any one note is enough: the prefix may have lost its records, nodes may be new.
  std::uint64_t noted = context.noted_on_prefix || context.noted_in_store ? 1 : 0;
  context.comm->all_reduce(std::span(&noted, 1), Reduction::max, context.deadline());
  if (noted != 0) context.ledger.note_commits_exist();
}

}  // namespace

void start(Context& context) {
  context.comm->connect(context.deadline());
  check_options(context);
  find_nodes(context);
  share_cores(context);
  join_set(context);
  take_incarnation(context);
  try {
    const Id128 nonce = prove_prefix(context);
    take_store(context);
    choose_store_io(context);
    prove_stores(context, nonce);
    settle_identity(context);
  } catch (const Error&) {
    // A start that came to nothing must not make the one that runs think that it was replaced.
    if (context.catalog) (void)attempt([&] { context.catalog->withdraw_incarnation(); });
    if (context.lock) (void)attempt([&] { context.lock->release(); });
    throw;
  }
  if (context.comm->thread_support() == ThreadSupport::single && context.is_root()) {
    context.log.info("MPI was initialised for a single thread: all work runs inside the engine's calls");
  }
}

}  // namespace kedge::engine
