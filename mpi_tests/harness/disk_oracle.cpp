#include "harness/disk_oracle.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <span>
#include <string_view>

#include "base/attempt.hpp"
#include "checksum/crc32c.hpp"
#include "format/container_reader.hpp"
#include "format/manifest.hpp"
#include "harness/redundancy_support.hpp"

namespace kedge::faults {
namespace {

constexpr std::string_view kNodes = "/nodes/";

/// The node in whose store the path lies; empty if it lies in none.
std::string node_of(const std::string& path) {
  if (!path.starts_with(kNodes)) return {};
  return path.substr(kNodes.size(), path.find('/', kNodes.size()) - kNodes.size());
}

std::string name_of(const std::string& path) { return path.substr(path.rfind('/') + 1); }

/// "rank-", "parity-" or "set-"; empty for all other names.
std::string_view prefix_of(std::string_view name) {
  for (const std::string_view prefix : {"rank-", "parity-", "set-"}) {
    if (name.starts_with(prefix)) return prefix;
  }
  return {};
}

/// A file that was put in another's place counts for neither: its name tells whose it should be.
bool is_named_after(std::string_view name, std::string_view prefix, LogicalRank rank) {
  return name.substr(prefix.size()).starts_with(std::to_string(rank.value) + ".");
}

std::optional<StoredFile> read_container(const std::string& path, const std::vector<std::byte>& bytes) {
  const std::string name = name_of(path);
  StoredFile file{path, node_of(path),
                  format::decode_superblock(std::span(bytes).first(format::kSuperblockBytes), path)};
  if (!is_named_after(name, "rank-", std::get<format::Superblock>(file.head).logical_rank)) return std::nullopt;
  redundancy::MemoryFile content(bytes);
  const auto damaged =
      attempt([&] { file.whole = format::ContainerReader(content, bytes.size(), path).verify().empty(); });
  if (damaged) file.whole = false;
  return file;
}

std::optional<StoredFile> read_set_file(const std::string& path, const std::vector<std::byte>& bytes,
                                        std::string_view prefix) {
  const bool parity = prefix == "parity-";
  const auto set = format::decode_set_descriptor(std::span(bytes).first(format::kSuperblockBytes), path);
  if ((set.kind == format::SetFileKind::parity) != parity) return std::nullopt;
  if (!is_named_after(name_of(path), prefix, set.members.at(set.position).logical_rank)) return std::nullopt;
  const auto rest = std::span(bytes).subspan(format::kSuperblockBytes);
  const bool whole = parity ? rest.size() == set.parity_bytes && crc32c(rest, 0) == set.parity_crc : rest.empty();
  return StoredFile{path, node_of(path), set, whole};
}

/// Of the tag directories on the prefix, which nobody damages here: they have their names when they are whole.
std::vector<format::ManifestHead> manifests(const FaultyDisk::Snapshot& disk) {
  std::vector<format::ManifestHead> heads;
  for (const auto& file : disk) {
    const std::string& path = file.first;
    if (!path.starts_with("/prefix/s") || !path.ends_with("/checkpoint.h5")) continue;
    redundancy::MemoryFile content(file.second.bytes);
    const auto failure =
        attempt([&] { heads.push_back(format::ManifestReader(content, content.bytes().size(), path).head()); });
    EXPECT_FALSE(failure) << to_string(*failure);
  }
  return heads;
}

}  // namespace

std::vector<StoredFile> sealed_files(const FaultyDisk::Snapshot& disk) {
  std::vector<StoredFile> files;
  for (const auto& entry : disk) {
    const std::string& path = entry.first;
    const auto& bytes = entry.second.bytes;
    const std::string name = name_of(path);
    const std::string_view prefix = prefix_of(name);
    if (node_of(path).empty() || prefix.empty() || bytes.size() < format::kSuperblockBytes) continue;
    (void)attempt([&] {  // a head that is not sealed or not whole tells nothing
      const auto file = prefix == "rank-" ? read_container(path, bytes) : read_set_file(path, bytes, prefix);
      if (file) files.push_back(*file);
    });
  }
  return files;
}

std::vector<std::string> store_paths(const FaultyDisk& disk, const std::set<std::string>& nodes) {
  std::vector<std::string> paths;
  for (const auto& [path, entry] : disk.snapshot()) {
    if (nodes.contains(node_of(path)) && !prefix_of(name_of(path)).empty()) paths.push_back(path);
  }
  return paths;
}

bool RemainingCommit::in_stores() const {
  std::set<std::uint32_t> had = held;
  for (const auto& [key, set] : sets) {
    const auto members = static_cast<std::uint32_t>(set.descriptor.members.size());
    const bool partner = set.descriptor.scheme == Scheme::partner;
    std::uint32_t missing = 0;
    for (std::uint32_t i = 0; i < members; ++i) {
      const bool container = held.contains(set.descriptor.members[i].logical_rank.value);
      // A partner's parity is the copy of the member before it; others need both files of all but `parities` members.
      const bool sound =
          partner ? container || set.parity.contains((i + 1) % members) : container && set.parity.contains(i);
      if (!sound) ++missing;
    }
    if (missing > (partner ? 0 : set.descriptor.parity_count)) continue;
    for (const auto& member : set.descriptor.members) had.insert(member.logical_rank.value);
  }
  return had.size() == world_size;
}

std::map<Id128, RemainingCommit> commits_left(const std::vector<StoredFile>& files,
                                              const std::set<std::string>& nodes) {
  std::map<Id128, RemainingCommit> commits;
  for (const StoredFile& file : files) {
    const auto* head = std::get_if<format::Superblock>(&file.head);
    if (head == nullptr || !nodes.contains(file.node)) continue;
    RemainingCommit& left = commits[head->commit.id];
    left.id = head->commit.id;
    left.generation = head->commit.generation;
    left.world_size = head->commit.world_size;
    left.tag = head->commit.tag;
    if (file.whole) left.held.insert(head->logical_rank.value);
  }
  for (const StoredFile& file : files) {
    const auto* head = std::get_if<format::SetDescriptor>(&file.head);
    if (head == nullptr || !file.whole || !nodes.contains(file.node)) continue;
    const auto commit = commits.find(head->commit_id);
    if (commit == commits.end()) continue;
    RemainingCommit::Set& set = commit->second.sets[{head->protection_id, head->set_number}];
    set.descriptor = *head;
    if (head->kind == format::SetFileKind::parity) set.parity.insert(head->position);
  }
  return commits;
}

std::string fatal_loss(const FaultyDisk& disk, const std::set<std::string>& nodes, std::size_t count,
                       const Id128& commit_id) {
  const auto files = sealed_files(disk.snapshot());
  std::vector<bool> lost(nodes.size(), false);
  std::fill_n(lost.begin(), std::min(count, lost.size()), true);
  do {
    std::set<std::string> left;
    std::string names;
    std::size_t i = 0;
    for (const std::string& node : nodes) {
      if (lost[i++]) names += " " + node;
      else left.insert(node);
    }
    const auto commits = commits_left(files, left);
    const auto commit = commits.find(commit_id);
    if (commit == commits.end() || !commit->second.in_stores()) return names;
  } while (std::prev_permutation(lost.begin(), lost.end()));
  return {};
}

std::vector<RemainingCommit> DiskOracle::look(const std::set<std::string>& nodes) const {
  const FaultyDisk::Snapshot disk = disk_.snapshot();
  auto commits = commits_left(sealed_files(disk), nodes);
  for (const format::ManifestHead& head : manifests(disk)) {
    const RemainingCommit not_in_stores{head.commit.id, head.commit.generation, head.commit.world_size,
                                        head.commit.tag};
    commits.emplace(head.commit.id, not_in_stores).first->second.persistent = true;
  }
  std::vector<RemainingCommit> newest_first;
  for (auto& [id, left] : commits) {
    left.discarded = discarded_.contains(id);
    newest_first.push_back(std::move(left));
  }
  std::ranges::sort(newest_first, std::greater(), &RemainingCommit::generation);
  return newest_first;
}

}  // namespace kedge::faults
