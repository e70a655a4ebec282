// Proofs by nonce files, at an engine's start, that storage is shared where it must be and nowhere else.
#pragma once

#include <string>

#include "comm/group.hpp"
#include "comm/topology.hpp"
#include "commits/run_identity.hpp"
#include "fs/file_system.hpp"
#include "persist/run_start.hpp"

namespace kedge::start {

/// The storage that a proof is about: `path` is the prefix as this rank was given it, or this rank's store.
struct CheckedStorage {
  fs::FileSystem& file_system;
  std::string path;
  const commits::RunIdentity& run;
  std::string mounts = {};  ///< Environment::mounts
};

/// COLLECTIVE. The prefix is one filesystem on all ranks: rank 0 writes a random number there, and one rank of each
/// node reads it, and every rank that may see other mounts than that one. `start` is rank 0's, null elsewhere.
/// Returns the number, the same on every rank. Throws Error{invalid_argument} naming a rank that sees another
/// directory. The file stays until its remove_nonces().
[[nodiscard]] Id128 require_shared_prefix(const comm::Group& group, const CheckedStorage& prefix,
                                          const comm::Topology& topology, persist::RunStart* start);

/// COLLECTIVE, with the stores' locks held. No two failure domains share a store: the lowest rank of each node, and
/// every rank whose store is another directory than that one's, leaves a file with `nonce` in its store and looks whose
/// else are there. Throws Error{invalid_argument} naming two ranks and the directory. Also removes what starts that
/// crashed here left.
void require_separate_stores(const comm::Group& group, const CheckedStorage& store, const comm::Topology& topology,
                             const Id128& nonce);

}  // namespace kedge::start
