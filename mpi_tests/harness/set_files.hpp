// Parity and set descriptors on a simulated disk, and nodes that change places.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "format/set_descriptor.hpp"
#include "harness/several_starts.hpp"

namespace kedge::faults {

/// The store of "node<number>", as SimulatedJob names nodes.
[[nodiscard]] std::string store_of(int node);

struct SetFile {
  std::string path;
  format::SetDescriptor set;
};
/// The sealed files of this kind, by path; of one commit if an id is given.
[[nodiscard]] std::vector<SetFile> set_files(const FaultyDisk& disk, format::SetFileKind kind,
                                             const Id128& commit_id = {});
/// The file of a rank's newest commit of this tag; fails the test if there is none.
[[nodiscard]] std::string set_file_of(const FaultyDisk& disk, format::SetFileKind kind, int rank, const Tag& tag);

/// The logical ranks of each set that protects the newest commit of this tag, by set number, as the disk tells it.
[[nodiscard]] std::vector<std::vector<int>> sets_of(const FaultyDisk& disk, const Tag& tag);

/// Node names by rank: `ranks_on[i]` ranks on "node<i>".
[[nodiscard]] std::vector<std::string> on_nodes(const std::vector<int>& ranks_on);

/// From the next start on, which node each rank is on.
void place(SimulatedJob& job, const std::vector<std::string>& node_of_rank);

/// A node's store goes to another name, which must be free.
void move_store(FaultyDisk& disk, const std::string& from_node, const std::string& to_node);

/// Files in the run's directory of a node, but for locks and the run's record.
[[nodiscard]] std::vector<std::string> files_in(const FaultyDisk& disk, const std::string& node);

/// Where the region field/large lies in a container.
[[nodiscard]] std::uint64_t inside_large(FaultyDisk& disk, const std::string& path);

}  // namespace kedge::faults
