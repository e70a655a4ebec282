// What writer and reader share: the run's identity, its history, and the ways ranks come together.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/log.hpp"
#include "comm/group.hpp"
#include "comm/topology.hpp"
#include "comm/vote.hpp"
#include "commits/ledger.hpp"
#include "engine/calls.hpp"
#include "engine/environment.hpp"
#include "kedge/communicator.hpp"
#include "kedge/engine.hpp"
#include "persist/catalog.hpp"
#include "persist/posix_tier.hpp"
#include "persist/prefix.hpp"
#include "recovery/recovery.hpp"
#include "recovery/source.hpp"
#include "redundancy/exchange.hpp"
#include "store/node_records.hpp"
#include "store/node_store.hpp"
#include "store/retirement.hpp"
#include "store/store_lock.hpp"

namespace kedge::engine {

/// Between which bookends the engine is.
enum class Phase : std::uint8_t { idle, writing, reading, finished };

/// How this rank's containers are protected, and by whom.
struct Redundancy {
  Scheme scheme = Scheme::single;     ///< (same) never automatic
  std::uint32_t parities = 1;         ///< (same) rs: members of a set that may be lost, 2 to 4; else 1
  std::uint64_t set_number = 0;       ///< of this rank's set
  redundancy::Membership membership;  ///< of this rank's set; alone in it if the scheme is single
  int second_manifest = -1;           ///< (same) lowest rank outside of rank 0's failure domain; -1: there is none
};

/// State of one engine on one rank. Values that are the same on every rank are marked (same).
struct Context {
  Context(std::unique_ptr<Communicator> communicator, Options options, Environment environment);

  std::unique_ptr<Communicator> comm;
  Options options;
  Environment environment;
  Log log;

  std::unique_ptr<persist::Catalog> catalog;  ///< rank 0 alone
  std::unique_ptr<persist::Prefix> prefix;    ///< rank 0 alone
  std::string prefix_path;                    ///< canonical
  std::unique_ptr<persist::PosixTier> tier;
  std::unique_ptr<store::StoreLock> lock;
  std::unique_ptr<store::NodeRecords> records;
  std::unique_ptr<store::NodeStore> store;

  comm::Topology topology;    ///< where this rank is
  unsigned copy_threads = 1;  ///< that save and load may use, this one included
  Redundancy redundancy;

  std::string run;                ///< (same)
  Id128 run_id;                   ///< (same)
  std::uint64_t incarnation = 0;  ///< (same)
  bool noted_on_prefix = false;   ///< (same)
  bool noted_in_store = false;    ///< this rank's
  std::uint64_t unflushed = 0;    ///< (same) commits since the last persistent one; at least what the next flush needs
                                  ///< after an open of one that is not

  Phase phase = Phase::idle;  ///< (same)
  commits::Ledger ledger;     ///< (same)
  std::unique_ptr<recovery::Recovery> recovery;
  std::unique_ptr<recovery::SourceRecovery> sources;
  std::string dead_because;  ///< not the same: some ranks may time out while others return

  [[nodiscard]] int rank() const noexcept { return comm->rank(); }
  [[nodiscard]] bool is_root() const noexcept { return comm->rank() == 0; }
  [[nodiscard]] std::chrono::duration<double> patience() const {
    return std::chrono::duration<double>(options.comm.timeout_s);
  }
  [[nodiscard]] Deadline deadline() const { return Deadline::after(patience()); }
  [[nodiscard]] LogicalRank logical_rank() const { return LogicalRank{static_cast<std::uint32_t>(comm->rank())}; }

  /// COLLECTIVE. The exchange that begins every collective call: throws bad_state on all ranks if they make
  /// different calls or `local` failed on any.
  std::uint64_t enter(Call call, std::uint64_t argument_hash, const std::optional<Failure>& local = {},
                      std::uint64_t payload = 0) const;
  /// COLLECTIVE. The first failure on any rank, the same on all.
  [[nodiscard]] std::optional<Failure> vote(const std::optional<Failure>& local) const {
    return comm::vote(*comm, local, deadline());
  }
  /// COLLECTIVE. A small value from rank 0.
  template <class Value>
  void broadcast(Value& value) {
    comm->broadcast(std::as_writable_bytes(std::span(&value, 1)), 0, deadline());
  }

  /// Local. Why the engine takes no more calls at all, if so: it is dead or was finalized.
  [[nodiscard]] std::optional<Failure> ended() const;
  /// Local. Nothing if the engine is in one of these phases, else the bad_state to bring along.
  [[nodiscard]] std::optional<Failure> wrong_phase(Call call, std::initializer_list<Phase> fitting) const;

  /// Local. The same for a call that never throws and does not communicate.
  [[nodiscard]] std::optional<Failure> wrong_phase(std::string_view call, Phase fitting, std::string_view first) const;

  /// COLLECTIVE. Before commit or open return a commit anywhere: from now on a start that finds none must not
  /// begin from zero. Noted on the prefix and in every store, so that the loss of either does not matter. What
  /// cannot note it says so in a line, and the next commit or open tries again.
  void note_first_commit(const Id128& commit_id);
  /// Local. See store::retire_superseded.
  void retire() { store::retire_superseded(*store, ledger, options.store.keep, log); }
  [[nodiscard]] comm::Group group() const { return {*comm, patience()}; }
};

/// COLLECTIVE. Brings the run to life on all ranks or throws the same on all: options, incarnation, store,
/// lock, identity.
void start(Context& context);

/// Runs the body of a collective call; a timeout or the loss of the incarnation ends the engine's life.
template <class Body>
auto collective(Context& context, Body&& body) {
  comm::throw_if(context.ended());
  try {
    return std::forward<Body>(body)();
  } catch (const Error& error) {
    if (error.code() == ErrorCode::timeout) context.dead_because = error.failure().message;
    throw;
  } catch (const std::exception& error) {
    // Outside of every vote: the other ranks cannot know, so this rank must not take part any more.
    context.dead_because = error.what();
    throw Error(ErrorCode::io, std::string("unexpected: ") + error.what());
  }
}

}  // namespace kedge::engine
