// Starts an engine: step by step, each decided together, so that all ranks start or none.
#pragma once

#include <memory>
#include <string>

#include "comm/group.hpp"
#include "comm/topology.hpp"
#include "commits/run_identity.hpp"
#include "persist/prefix_markers.hpp"
#include "persist/prefix_storage.hpp"
#include "persist/run_start.hpp"
#include "redundancy/assignment.hpp"
#include "start/environment.hpp"
#include "store/node_store.hpp"
#include "store/store_lock.hpp"
#include "store/store_record_files.hpp"

namespace kedge::start {

/// Lock, records and store of this rank on its node.
struct NodeHandles {
  std::unique_ptr<store::StoreLock> lock;
  std::unique_ptr<store::StoreRecordFiles> records;
  std::unique_ptr<store::NodeStore> store;
  store::StoreRecord owner;  ///< content of the store's owner record
};

/// Start, markers and storage of the run on the prefix.
struct PrefixHandles {
  std::unique_ptr<persist::RunStart> start;         ///< rank 0's, null elsewhere
  std::unique_ptr<persist::PrefixMarkers> markers;  ///< rank 0's, null elsewhere
  persist::PrefixStorage storage;
};

/// Which storage says that commits of the run exist.
struct CommitEvidence {
  bool on_prefix = false;       ///< whether the prefix does; equal on every rank
  bool in_store = false;        ///< whether this rank's store does
  bool store_recorded = false;  ///< whether the run's record names rank 0's store; on rank 0
};

/// Result of a start, unchanged until the engine ends.
struct StartResult {
  comm::Topology topology;
  unsigned copy_threads = 1;  ///< number of threads for save and load, including the calling one
  redundancy::RedundancySetAssignment assignment;
  commits::RunIdentity run;  ///< run and start; equal on every rank
  Id128 start_id;            ///< id of this start; equal on every rank
  std::string prefix_path;   ///< canonical; equal on every rank
  std::string job;           ///< the batch system's job, by rank 0's variables; equal on every rank
  PrefixHandles prefix;
  NodeHandles node;
  CommitEvidence commit_evidence;
  bool commits_exist = false;  ///< according to any evidence; equal on every rank
};

/// COLLECTIVE. Checks the options, finds the topology, takes the next incarnation of the run, and locks the stores.
/// Throws the same Error on all ranks, and then takes nothing.
[[nodiscard]] StartResult start(const comm::Group& group, const Options& options, const Environment& environment,
                                const Log& log);

}  // namespace kedge::start
