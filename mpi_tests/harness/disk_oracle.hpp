// What can be had of a simulated job's checkpoints, told by the bytes on its disk alone: the engine's answers are held
// against it, so it shares the formats with the engine and none of its decisions.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "format/set_descriptor.hpp"
#include "format/superblock.hpp"
#include "harness/faulty_file_system.hpp"
#include "kedge/engine.hpp"

namespace kedge::faults {

/// A sealed file in the store of a node: a container, or parity or the descriptor of a set.
struct StoredFile {
  std::string path;
  std::string node;
  std::variant<format::Superblock, format::SetDescriptor> head;
  bool whole = false;  ///< every byte behind the head is what was sealed
};
[[nodiscard]] std::vector<StoredFile> sealed_files(const FaultyDisk::Snapshot& disk);

/// Paths of all containers, parity and descriptors in these nodes' stores, sealed or not.
[[nodiscard]] std::vector<std::string> store_paths(const FaultyDisk& disk, const std::set<std::string>& nodes);

/// The files that are left of a commit.
struct RemainingCommit {
  struct Set {
    format::SetDescriptor descriptor;
    std::set<std::uint32_t> parity;  ///< positions whose parity is whole
  };

  Id128 id;
  std::uint64_t generation = 0;
  std::uint32_t world_size = 0;
  Tag tag;
  std::set<std::uint32_t> held = {};                         ///< ranks whose container is whole
  std::map<std::pair<Id128, std::uint64_t>, Set> sets = {};  ///< by protection id and set number
  bool persistent = false;
  bool discarded = false;

  /// Every container is there or can be rebuilt.
  [[nodiscard]] bool in_stores() const;
  [[nodiscard]] bool can_be_recovered() const { return !discarded && (persistent || in_stores()); }
};

/// The commits of which these nodes hold a container, damaged or not.
[[nodiscard]] std::map<Id128, RemainingCommit> commits_left(const std::vector<StoredFile>& files,
                                                            const std::set<std::string>& nodes);

/// The names of `count` of these nodes without which the stores do not have the commit; empty if there are none.
[[nodiscard]] std::string fatal_loss(const FaultyDisk& disk, const std::set<std::string>& nodes, std::size_t count,
                                     const Id128& commit_id);

/// Remembers what the disk does not tell it: what was discarded.
class DiskOracle {
 public:
  explicit DiskOracle(const FaultyDisk& disk) : disk_(disk) {}

  /// What these nodes or the prefix have something of, newest first. Fails the test if a manifest is damaged.
  [[nodiscard]] std::vector<RemainingCommit> look(const std::set<std::string>& nodes) const;
  /// From now on nothing of this is to be offered.
  void discard(const Id128& commit_id) { discarded_.insert(commit_id); }

 private:
  const FaultyDisk& disk_;
  std::set<Id128> discarded_;
};

}  // namespace kedge::faults
