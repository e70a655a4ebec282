// Checks at a start, by nonce files, that the prefix is shared and that stores are not.
#pragma once

#include <string>

#include "comm/group.hpp"
#include "comm/topology.hpp"
#include "commits/run_identity.hpp"
#include "fs/file_system.hpp"
#include "persist/run_start.hpp"

namespace kedge::start {

/// The storage to check: `path` is the prefix as this rank was given it, or this rank's store.
struct CheckedStorage {
  fs::FileSystem& file_system;
  std::string path;
  const commits::RunIdentity& run;
  std::string mounts = {};  ///< Environment::mounts
};

/// COLLECTIVE. Throws Error{invalid_argument}, naming a rank that sees another directory, unless the prefix is one
/// filesystem on all ranks: rank 0 writes a random number there, and one rank of each node reads it, and every rank
/// that may see other mounts than that one. `start` is rank 0's, null elsewhere. Returns the number, equal on every
/// rank. The file stays until start->remove_nonces().
[[nodiscard]] Id128 require_shared_prefix(const comm::Group& group, const CheckedStorage& prefix,
                                          const comm::Topology& topology, persist::RunStart* start);

/// COLLECTIVE, with the stores' locks held. Throws Error{invalid_argument}, naming two ranks and the directory, if two
/// failure domains share a store: the lowest rank of each node, and every rank whose store is another directory than
/// that one's, writes a file with `nonce` into its store and reads which others are there. Also removes files that
/// crashed starts left.
void require_separate_stores(const comm::Group& group, const CheckedStorage& store, const comm::Topology& topology,
                             const Id128& nonce);

}  // namespace kedge::start
