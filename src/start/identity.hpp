// Which run a start belongs to: what lies on the prefix decides, and the stores only where that was lost.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/group.hpp"
#include "commits/run_identity.hpp"
#include "persist/prefix_storage.hpp"
#include "persist/run_record.hpp"
#include "persist/run_start.hpp"
#include "start/environment.hpp"
#include "store/location.hpp"

namespace kedge::start {

/// The run as the prefix knows it, the same on every rank but for what is rank 0's.
struct KnownRun {
  commits::RunIdentity run;                  ///< its id: none if the prefix does not say
  Id128 prefix_id;                           ///< none if the prefix does not say; a new one if it is a copy
  std::string prefix;                        ///< canonical, as rank 0 sees it
  std::string given;                         ///< as rank 0 was given it: absolute, and perhaps through links
  std::vector<Id128> given_up;               ///< runs of this name that were left behind on purpose
  std::vector<std::string> former_prefixes;  ///< where it lay before, newest first
  bool has_commits = false;                  ///< noted on the prefix
  bool is_damaged = false;                   ///< there is a run.json, and it is damaged
  std::string moved_from;                    ///< where it lay at the last start, if that was elsewhere; rank 0's
  bool is_copy = false;                      ///< the original is still there, and this prefix was copied from it; rank
                                             ///< 0's
  std::optional<std::string> fingerprint;    ///< as recorded; rank 0's
  std::string store;                         ///< as recorded (RunRecord::store); rank 0's
  persist::LaunchInfo launch_info;           ///< who makes this start; rank 0's, but for its id
  std::string left_behind;  ///< with start = fresh: what stays in stores that the prefix has no record of

  /// The prefix has some trace of the run: a damaged record, a note of a commit, or its id.
  [[nodiscard]] bool has_trace() const { return is_damaged || has_commits || !run.id.is_none(); }
  /// The prefix says who the run is, and whose its stores are.
  [[nodiscard]] bool is_identified() const { return !run.id.is_none() && !prefix_id.is_none(); }
};

/// Whose the stores are.
struct RunIds {
  Id128 run_id;
  Id128 prefix_id;
  bool from_manifests = false;  ///< the prefix has checkpoints of it, and lost its records

  [[nodiscard]] bool is_same_as(const RunIds& other) const {
    return run_id == other.run_id && prefix_id == other.prefix_id;
  }
};

/// Additions of this start to the run's record.
struct RecordUpdate {
  const std::string& fingerprint;  ///< what commits depend on from now on; empty if nobody says
  const std::string& store;        ///< rank 0's
  bool fresh = false;              ///< start = fresh
};

/// Where to look for what is known of the run.
struct RunSources {
  fs::FileSystem& file_system;
  persist::RunStart* start = nullptr;  ///< rank 0's, null elsewhere
  persist::PrefixReader& prefix;
  const std::string& root;  ///< in which this rank's store is to lie
  const store::LocationOptions& location_options;
  const Log& log;
};

/// COLLECTIVE. Rank 0 chooses the run's name, takes the next incarnation as `start`, and reads who it is. Throws the
/// same Error on all ranks: mismatch (which of several runs is meant, or what it has is another computation's), io.
[[nodiscard]] KnownRun find_run(const comm::Group& group, const Options& options, const Environment& environment,
                                const Log& log, std::unique_ptr<persist::RunStart>& start);

/// COLLECTIVE. The ids that are known, else those of the run's manifests and of stores that belong to this prefix, else
/// new ones. They are in the run's record before anything lies in a store, unless the run begins anew. Stores of the
/// run's name that name this prefix and have commits that it does not know stop the start (mismatch), unless
/// start = adopt continues from them, or fresh gives them up: `known` is changed accordingly. Throws corrupt
/// (there were commits, and nothing says of which run).
[[nodiscard]] RunIds decide_ids(const comm::Group& group, const Options& options, KnownRun& known,
                                const RunSources& places);

/// Local, rank 0, once this start has its place on all stores: begins its incarnation, and puts right what the records
/// say. Throws busy if another start has begun since.
void write_identity(persist::RunStart& start, const KnownRun& known, const RunIds& ids, const RecordUpdate& given);

}  // namespace kedge::start
