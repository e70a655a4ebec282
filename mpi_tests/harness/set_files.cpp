#include "harness/set_files.hpp"

#include <algorithm>
#include <map>
#include <span>

#include "base/attempt.hpp"
#include "base/text.hpp"
#include "format/container_reader.hpp"

namespace kedge::faults {

std::string store_of(int node) { return compose("/nodes/node{}", node); }

std::vector<SetFile> set_files(const FaultyDisk& disk, format::SetFileKind kind, const Id128& commit_id) {
  const bool parity = kind == format::SetFileKind::parity;
  std::vector<SetFile> found;
  for (const auto& file : disk.snapshot()) {
    const std::string& path = file.first;
    const std::span bytes(file.second.bytes);
    const std::string name = path.substr(path.rfind('/') + 1);
    if (!name.starts_with(parity ? "parity-" : "set-") || bytes.size() < format::kSuperblockBytes) continue;
    (void)attempt([&] {  // an unsealed one tells nothing
      const auto set = format::decode_set_descriptor(bytes.first(format::kSuperblockBytes), path);
      if (commit_id.is_none() || set.commit_id == commit_id) found.push_back({path, set});
    });
  }
  return found;
}

namespace {

/// By whatever container of the commit is left.
Id128 commit_of(const FaultyDisk& disk, const Tag& tag) {
  std::uint64_t generation = 0;
  Id128 commit_id;
  for (int rank = 0; rank < 16; ++rank) {
    for (const auto& [path, superblock] : superblocks(disk, rank)) {
      if (superblock.commit.tag != tag || superblock.commit.generation < generation) continue;
      generation = superblock.commit.generation;
      commit_id = superblock.commit.id;
    }
  }
  EXPECT_FALSE(commit_id.is_none()) << "no container of " << tag;
  return commit_id;
}

}  // namespace

std::string set_file_of(const FaultyDisk& disk, format::SetFileKind kind, int rank, const Tag& tag) {
  for (const SetFile& file : set_files(disk, kind, commit_of(disk, tag))) {
    if (file.set.members.at(file.set.position).logical_rank.value == static_cast<std::uint32_t>(rank)) return file.path;
  }
  ADD_FAILURE() << "rank " << rank << " has no such file of " << tag;
  return {};
}

std::vector<std::vector<int>> sets_of(const FaultyDisk& disk, const Tag& tag) {
  std::map<std::uint64_t, std::vector<int>> by_number;
  for (const SetFile& file : set_files(disk, format::SetFileKind::descriptor, commit_of(disk, tag))) {
    auto& ranks = by_number[file.set.set_number];
    ranks.clear();
    for (const auto& member : file.set.members) ranks.push_back(static_cast<int>(member.logical_rank.value));
  }
  std::vector<std::vector<int>> sets;
  sets.reserve(by_number.size());
  for (const auto& [number, ranks] : by_number) sets.push_back(ranks);
  return sets;
}

std::vector<std::string> on_nodes(const std::vector<int>& ranks_on) {
  std::vector<std::string> names;
  for (std::size_t node = 0; node < ranks_on.size(); ++node) {
    names.insert(names.end(), static_cast<std::size_t>(ranks_on[node]), compose("node{}", node));
  }
  return names;
}

void place(SimulatedJob& job, const std::vector<std::string>& node_of_rank) {
  job.ranks = static_cast<int>(node_of_rank.size());
  job.nodes = node_of_rank;
}

void move_store(FaultyDisk& disk, const std::string& from_node, const std::string& to_node) {
  disk.view(0)->rename("/nodes/" + from_node, "/nodes/" + to_node);
}

std::vector<std::string> files_in(const FaultyDisk& disk, const std::string& node) {
  const std::string directory = run_directory_of(disk, node) + "/";
  std::vector<std::string> files;
  for (const auto& [path, entry] : disk.snapshot()) {
    if (!path.starts_with(directory)) continue;
    const std::string name = path.substr(directory.size());
    if (name.starts_with("rank-") || name.starts_with("parity-") || name.starts_with("set-")) files.push_back(name);
  }
  return files;
}

std::uint64_t inside_large(FaultyDisk& disk, const std::string& path) {
  const auto file = disk.view(0)->open(path, fs::Access::read);
  const format::ContainerReader container(*file, file->status().size_bytes, path);
  const auto* region = container.find_region("field/large");
  return region->offset + region->size_bytes / 2;
}

}  // namespace kedge::faults
