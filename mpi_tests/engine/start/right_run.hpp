// Cases that share their nodes: a directory each, with a prefix in it.
#pragma once

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "harness/several_starts.hpp"

namespace kedge::faults {

class RightRun : public ::testing::Test {
 protected:
  RightRun() {
    job.options.run = "";
    job.options.persistent.every = 1;
    enter("/case");
  }
  void enter(const std::string& directory) {
    // There is no umask in this world.
    job.options.persistent.path = directory + "/checkpoints";
    job.disk.make_directories(job.options.persistent.path, 0755);
  }
  void lose_prefix() {
    job.disk.remove_all("/case/checkpoints");
    enter("/case");
  }
  /// The prefix goes to another place, as `mv` does it.
  void move(const std::string& from, const std::string& to) { job.disk.view(0)->rename(from, to); }
  /// As `cp -r` does it.
  void copy(const std::string& from, const std::string& to) {
    for (const auto& [path, entry] : job.disk.snapshot()) {
      if (path != from && !path.starts_with(from + "/")) continue;
      const std::string target = to + path.substr(from.size());
      if (entry.status.kind == fs::FileStatus::Kind::directory) job.disk.make_directories(target, entry.status.mode);
      else job.disk.write_all(target, job.disk.read_all(path));
    }
  }
  /// Of local commits only, so that it is the stores that go along.
  void local_only() { job.options.persistent.every = 0; }
  Failure expect_refused(ErrorCode code) {
    const auto opened = reopen(job);
    EXPECT_TRUE(opened.failure);
    Failure failure = opened.failure.value_or(Failure{});
    EXPECT_EQ(failure.code, code) << to_string(failure);
    return failure;
  }
  /// The store in which this path lies, on every node, as kedge drop does it there.
  void remove_everywhere(const std::string& path) {
    const std::string below_node = path.substr(std::string("/nodes/node0/").size());
    const std::string store = below_node.substr(0, below_node.find('/'));
    for (const char* node : {"/nodes/node0/", "/nodes/node1/"}) job.disk.remove_all(node + store);
  }
  /// Of a start that finds what there is and saves nothing.
  std::string first_line() {
    const auto lines = job.log().size();
    EXPECT_FALSE(reopen(job).failure);
    return job.log().at(lines);
  }
  [[nodiscard]] std::size_t stores() const {
    std::set<std::string> directories;
    for (const auto& [path, entry] : job.disk.snapshot()) {
      if (path.starts_with("/nodes/node0/kedge-")) directories.insert(path.substr(0, path.find('/', 14)));
    }
    return directories.size();
  }

  SimulatedJob job{4};
};

}  // namespace kedge::faults
