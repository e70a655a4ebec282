// A backup by hard links (cp -al) of stores and prefix: what the job writes next is not written into it.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>

#include "harness/several_starts.hpp"

namespace kedge::faults::backup_test {
namespace {

using Contents = std::map<std::string, std::string>;

Contents contents_of(const std::string& directory) {
  Contents contents;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
    if (!entry.is_regular_file()) continue;
    std::ifstream file(entry.path(), std::ios::binary);
    contents[entry.path()] = {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }
  return contents;
}

class Backup : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    std::string pattern = GetParam() + "/kedge-test-XXXXXX";
    if (::mkdtemp(pattern.data()) == nullptr) GTEST_SKIP() << GetParam() << " is not there or cannot be written";
    directory = pattern;
    ASSERT_TRUE(std::filesystem::create_directories(directory + "/job/prefix"));
    job.ranks_per_node = 1;
    job.options.store.path = directory + "/job/{node}";
    job.options.store.keep = 2;
    job.options.persistent.path = directory + "/job/prefix";
    job.options.persistent.every = 1;
    job.options.persistent.keep = 2;
    job.surroundings = [](int, start::Environment& environment) { environment.file_system = fs::posix_file_system(); };
  }
  void TearDown() override {
    if (!directory.empty()) std::filesystem::remove_all(directory);
  }
  /// As cp -al does it.
  Contents back_up(const std::string& name) const {
    using Options = std::filesystem::copy_options;
    std::filesystem::copy(directory + "/job", directory + "/" + name, Options::recursive | Options::create_hard_links);
    return contents_of(directory + "/" + name);
  }

  std::string directory;
  SimulatedJob job{2};
};

TEST_P(Backup, OfADeadJobAndOfALivingOneStaysAsItWas) {
  Contents living;
  commit_steps(job, {{"a", 1}, {"b", 2}, {"c", 3}});
  const Contents dead = back_up("dead");
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    for (int step = 4; step < 8; ++step) commit_step(engine, scope.rank, "d", step);
    scope.communicator.barrier(Deadline::never());
    if (scope.rank == 0) living = back_up("living");
    scope.communicator.barrier(Deadline::never());
    for (int step = 8; step < 12; ++step) commit_step(engine, scope.rank, "e", step);
  }));
  EXPECT_EQ(contents_of(directory + "/dead"), dead);
  // Locks are of no use in a backup, and are removed and written while others look at them.
  Contents now = contents_of(directory + "/living");
  for (Contents* each : {&living, &now})
    std::erase_if(*each, [](const auto& one) { return one.first.find("/lock.") != std::string::npos; });
  EXPECT_EQ(now, living);
  EXPECT_EQ(reopen(job).tag, "e");
}

INSTANTIATE_TEST_SUITE_P(On, Backup, ::testing::Values("/dev/shm", "/tmp"),
                         [](const auto& place) { return std::string(place.param == "/tmp" ? "disk" : "memory"); });

}  // namespace
}  // namespace kedge::faults::backup_test
