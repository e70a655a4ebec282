// Which run a start belongs to: the prefix decides, and the stores only if the prefix's records are lost.
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

/// The run as the prefix knows it; equal on every rank, except for fields of rank 0.
struct KnownRun {
  commits::RunIdentity run;                  ///< the id is none if the prefix does not say
  Id128 prefix_id;                           ///< none if the prefix does not say; a new one if it is a copy
  std::string prefix;                        ///< canonical, as rank 0 sees it
  std::string given_prefix;                  ///< path that rank 0 was given: absolute, and perhaps through links
  std::vector<Id128> given_up_runs;          ///< runs of this name that were left behind on purpose
  std::vector<std::string> former_prefixes;  ///< earlier paths of the prefix, newest first
  bool has_commits = false;                  ///< recorded on the prefix
  bool is_damaged = false;                   ///< there is a run.json, and it is damaged
  std::string moved_from;                    ///< path of the prefix at the last start, if another; rank 0's
  bool is_copy = false;  ///< the original is still there, and this prefix was copied from it; rank 0's
  std::optional<std::string> fingerprint;  ///< the recorded fingerprint; rank 0's
  std::string store;                       ///< the recorded store (RunRecord::store); rank 0's
  persist::LaunchInfo launch_info;         ///< who makes this start; rank 0's, except its id
  std::string left_behind_warning;         ///< with start = fresh: commits in stores that the prefix has no record of

  /// Whether the prefix has some trace of the run: a damaged record, a marker of a commit, or its id.
  [[nodiscard]] bool has_any_record() const { return is_damaged || has_commits || !run.id.is_none(); }
  /// Whether the prefix says which run it is and which stores belong to it.
  [[nodiscard]] bool is_identified() const { return !run.id.is_none() && !prefix_id.is_none(); }
};

/// The ids of a run and its prefix, by which stores are recognized.
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
  const std::string& fingerprint;  ///< describes what commits depend on from now on; empty if unknown
  const std::string& store;        ///< rank 0's
  bool is_fresh = false;           ///< start = fresh
};

/// Storage that may know the run.
struct RunSources {
  fs::FileSystem& file_system;
  persist::RunStart* start = nullptr;  ///< rank 0's, null elsewhere
  persist::PrefixReader& prefix;
  const std::string& store_root;  ///< directory that contains this rank's store
  const store::LocationOptions& location_options;
  const Log& log;
};

/// COLLECTIVE. Chooses the run's name on rank 0, takes the next incarnation as `start`, and reads the run's identity.
/// Throws the same Error on all ranks: mismatch (which of several runs is meant, or its commits belong to another
/// computation), io.
[[nodiscard]] KnownRun find_run(const comm::Group& group, const Options& options, const Environment& environment,
                                const Log& log, std::unique_ptr<persist::RunStart>& start);

/// COLLECTIVE. Returns the ids that are known, else those of the run's manifests and of stores that belong to this
/// prefix, else new ones. Records them before anything is put in a store, unless the run begins anew. Stores of the
/// run's name that name this prefix and have commits that it does not know stop the start (mismatch), unless start =
/// adopt continues from them, or fresh gives them up: `known` is changed accordingly. Throws corrupt (there were
/// commits, and nothing says of which run).
[[nodiscard]] RunIds decide_ids(const comm::Group& group, const Options& options, KnownRun& known,
                                const RunSources& sources);

/// Begins the incarnation of this start, and corrects the records. Call it on rank 0 once all stores are locked. Throws
/// busy if another start has begun since. Local.
void write_identity(persist::RunStart& start, const KnownRun& known, const RunIds& ids, const RecordUpdate& update);

}  // namespace kedge::start
