#include "pipeline/whole_commit.hpp"

#include <cstdint>
#include <string>

#include "base/attempt.hpp"
#include "commits/commit_record.hpp"

namespace kedge::pipeline {
namespace {

/// Local. Checks the containers in this process's share.
bool sees_own_containers(const comm::Group& group, persist::PrefixReader& prefix, const std::string& directory,
                         const CommitHead& commit) {
  const auto failure = attempt([&] {
    if (group.is_root()) (void)prefix.read(directory);
    const auto step = static_cast<std::uint64_t>(group.size());
    for (auto rank = static_cast<std::uint64_t>(group.rank()); rank < commit.world_size; rank += step) {
      (void)prefix.open(directory, commit, LogicalRank{static_cast<std::uint32_t>(rank)});
    }
  });
  return !failure;
}

}  // namespace

NewestWhole find_newest_whole(const comm::Group& group, persist::PrefixReader& prefix,
                              const std::vector<persist::TagEntry>& entries) {
  NewestWhole found;
  std::uint64_t count = entries.size();
  group.broadcast(count);
  for (std::uint64_t at = 0; at < count; ++at) {
    std::string directory;
    commits::CommitRecord record;
    if (group.is_root()) {
      directory = entries[at].directory;
      record = commits::to_record(entries[at].commit);
    }
    group.broadcast(directory);
    group.broadcast(record);
    const CommitHead commit = commits::to_head(record);
    if (group.all(sees_own_containers(group, prefix, directory, commit))) {
      found.commit_id = commit.id;
      break;
    }
    found.broken.insert(commit.id);
  }
  return found;
}

}  // namespace kedge::pipeline
