// A simulated job of two ranks, each on a node of its own, whose stores are real ones in memory: only there do files
// that others change send signals.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "harness/several_starts.hpp"

namespace kedge::faults {

class OnRealStores : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = "/dev/shm/kedge-test-XXXXXX";
    if (::mkdtemp(pattern.data()) == nullptr) GTEST_SKIP() << "/dev/shm is not there or cannot be written";
    directory = pattern;
    ASSERT_TRUE(std::filesystem::create_directory(directory + "/prefix"));
    job.ranks_per_node = 1;
    job.options.redundancy.scheme = Scheme::partner;
    job.options.redundancy.every = 0;  // asked for where it is what is tested
    job.options.store.path = directory + "/{node}";
    job.options.persistent.path = directory + "/prefix";
    job.surroundings = [](int, start::Environment& environment) { environment.file_system = fs::posix_file_system(); };
  }
  void TearDown() override {
    if (!directory.empty()) std::filesystem::remove_all(directory);
  }

  std::string directory;
  SimulatedJob job{2};
};

}  // namespace kedge::faults
