// How an engine comes to life: one step after another, each decided together, so that all ranks start or none.
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
#include "store/store_records.hpp"

namespace kedge::start {

/// The run's place on this node.
struct NodeLocal {
  std::unique_ptr<store::StoreLock> lock;
  std::unique_ptr<store::StoreRecords> records;
  std::unique_ptr<store::NodeStore> store;
  store::StoreRecord owner;  ///< as the store's record says it
};

/// The run's place on the parallel filesystem.
struct Prefix {
  std::unique_ptr<persist::RunStart> start;         ///< rank 0's, null elsewhere
  std::unique_ptr<persist::PrefixMarkers> markers;  ///< rank 0's, null elsewhere
  persist::PrefixStorage storage;
};

/// Who says that commits of the run exist.
struct FoundMarkers {
  bool on_prefix = false;       ///< on the prefix; the same on every rank
  bool in_store = false;        ///< this rank's
  bool store_recorded = false;  ///< the run's record names rank 0's store; rank 0's
};

/// Results of a start. Nothing of it changes before the engine ends.
struct Started {
  comm::Topology topology;
  unsigned copy_threads = 1;  ///< that save and load may use, the calling one included
  redundancy::SetAssignment assignment;
  commits::RunIdentity run;  ///< run and start; the same on every rank
  Id128 start_id;            ///< id of this start; the same on every rank
  std::string path;          ///< of the prefix, canonical; likewise
  std::string job;           ///< of the batch system, by rank 0's variables; likewise
  Prefix prefix;
  NodeLocal node;
  FoundMarkers noted;
  bool commits_exist = false;  ///< noted anywhere; the same on every rank
};

/// COLLECTIVE. Checks the options, finds out where the ranks are, takes the next incarnation of the run and its place
/// on the prefix and the stores. Throws the same Error on all ranks, and then nothing is taken.
[[nodiscard]] Started start(const comm::Group& group, const Options& options, const Environment& environment,
                            const Log& log);

}  // namespace kedge::start
