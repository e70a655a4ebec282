// Which run a start belongs to: what lies on the prefix decides, and the stores only where that was lost.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/group.hpp"
#include "commits/run_identity.hpp"
#include "engine/setup.hpp"
#include "persist/run_records.hpp"
#include "persist/tier.hpp"
#include "store/location.hpp"

namespace kedge::engine {

/// What the prefix says of the run, the same on every rank but for what is rank 0's.
struct KnownRun {
  commits::RunIdentity run;                ///< its id: none if the prefix does not say
  Id128 place_id;                          ///< none if the prefix does not say; a new one if it is a copy
  std::string prefix;                      ///< canonical, as rank 0 sees it
  std::vector<std::string> former;         ///< where it lay before, newest first
  bool has_commits = false;                ///< noted on the prefix
  bool is_damaged = false;                 ///< there is a run.json, and it is damaged
  std::string moved_from;                  ///< where it lay at the last start, if that was elsewhere; rank 0's
  bool is_copy = false;                    ///< it still lies there: this prefix was copied from it; rank 0's
  std::optional<std::string> fingerprint;  ///< as recorded; rank 0's
  std::string store;                       ///< as recorded (RunRecord::store); rank 0's
  persist::Starter starter;                ///< who makes this start; rank 0's, but for its id
};

/// Whose the stores are.
struct RunAndPlace {
  Id128 run_id;
  Id128 place_id;
  bool from_manifests = false;  ///< the prefix has checkpoints of it, and lost its records
};

/// What this start adds to the run's record.
struct GivenNow {
  const std::string& fingerprint;  ///< what commits depend on from now on; empty if nobody says
  const std::string& store;        ///< rank 0's
  bool fresh = false;              ///< open.fresh
};

/// Where to look for what is known of the run.
struct PlacesOfRun {
  persist::RunRecords* records = nullptr;  ///< rank 0's, null elsewhere
  persist::Tier& tier;
  const std::string& root;  ///< in which this rank's store is to lie
  const store::Surroundings& surroundings;
};

/// COLLECTIVE. Rank 0 chooses the run's name, takes its records into `records` and the next incarnation, and reads who
/// it is. Throws the same Error on all ranks: mismatch (which of several runs is meant, or what it has is another
/// computation's), io.
[[nodiscard]] KnownRun find_run(const Setup& setup, const comm::Group& group,
                                std::unique_ptr<persist::RunRecords>& records);

/// COLLECTIVE. The ids that are known, else those of the run's manifests and of stores that belong to this prefix; if
/// it has no trace of them, only if they are adopted on purpose; else new ones. They are in the run's record before
/// anything lies in a store, unless the run begins anew. Throws mismatch (stores have commits of a run that the prefix
/// does not know, or of this one where its prefix lay before it lost its records), corrupt (there were commits, and
/// nothing says of which run).
[[nodiscard]] RunAndPlace settle_ids(const Setup& setup, const comm::Group& group, const KnownRun& known,
                                     const PlacesOfRun& places);

/// Local, rank 0, once this start has its place on all stores: begins its incarnation, and puts right what the records
/// say. Throws busy if another start has begun since.
void write_identity(persist::RunRecords& records, const KnownRun& known, const RunAndPlace& ids, const GivenNow& given);

}  // namespace kedge::engine
