// Jobs whose every commit goes to the prefix, and what lies there then.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "base/text.hpp"
#include "harness/simulated_job.hpp"
#include "persist/tag_directory.hpp"
#include "persist/tags.hpp"

namespace kedge::faults {

/// Every rank on a node of its own, every commit flushed.
struct PersistentJob : SimulatedJob {
  explicit PersistentJob(int rank_count, DiskOptions disk_options = memory_disk())
      : SimulatedJob(rank_count, std::move(disk_options)) {
    ranks_per_node = 1;
    options.persistent.every = 1;
  }
};

class FlushFixture : public testing::Test {
 protected:
  static void lose_stores(SimulatedJob& job, const std::vector<int>& nodes) {
    for (const int node : nodes) job.disk.remove_all(compose("/nodes/node{}", node));
  }

  [[nodiscard]] static persist::TagList list(SimulatedJob& job) {
    return persist::list_tags(*job.disk.view(0), "/prefix");
  }
  /// Committed ones, newest first.
  [[nodiscard]] static std::vector<Tag> tags(SimulatedJob& job) {
    std::vector<Tag> tags;
    for (const auto& entry : list(job).entries) tags.push_back(entry.commit.tag);
    return tags;
  }
  [[nodiscard]] static std::vector<std::string> directories(SimulatedJob& job) {
    std::vector<std::string> directories;
    for (const auto& entry : list(job).entries) directories.push_back(entry.directory);
    return directories;
  }
  [[nodiscard]] static std::string manifest_of(SimulatedJob& job, const Tag& tag) {
    return fs::join(directory_of(job, tag), persist::kManifestFile);
  }
  [[nodiscard]] static std::string container_of(SimulatedJob& job, const Tag& tag, std::uint32_t rank) {
    return fs::join(directory_of(job, tag), persist::container_file(LogicalRank{rank}));
  }
  /// Path of the newest of this tag; fails the test if there is none.
  [[nodiscard]] static std::string directory_of(SimulatedJob& job, const Tag& tag) {
    for (const auto& entry : list(job).entries) {
      if (entry.commit.tag == tag) return "/prefix/" + entry.directory;
    }
    ADD_FAILURE() << tag << " is not on the prefix";
    return "/none";
  }
  [[nodiscard]] static std::string text_of(const SimulatedJob& job, const std::string& path) {
    const auto bytes = job.disk.read_all(path);
    std::string text;
    for (const std::byte byte : bytes) text += static_cast<char>(byte);
    return text;
  }
};

}  // namespace kedge::faults
