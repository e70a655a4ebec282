// Spaces in the paths of stores and prefix, and in the names of regions and routed files.
#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "base/text.hpp"
#include "harness/routed_checks.hpp"

namespace kedge::faults::names_with_spaces_test {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;

const std::vector<std::string> kFiles{"restart file.bin", " out put / part 1 ", " ", "it's \"here\"/a\\b;c"};
const std::string kDirectory = "dump of 1/";
const std::string kInDirectory = "of rank/restart. 0";

struct SpacedJob : SimulatedJob {
  explicit SpacedJob(const DiskOptions& disk_options) : SimulatedJob(2, disk_options) {
    options.store.path = "/nodes/{node}/my stores";
    options.persistent.path = "/prefix/my check points";
    options.persistent.every = 1;
    options.persistent.plain_routed = true;
    disk.make_directories("/prefix/my check points", 0755);
  }
};

class NamesWithSpaces : public testing::TestWithParam<bool> {
 protected:
  SpacedJob job{GetParam() ? SimulatedJob::memory_disk() : SimulatedJob::block_disk()};
};

/// One checkpoint with all these names.
void commit(SimulatedJob& job) {
  expect_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    engine.create("a");
    for (std::size_t i = 0; i < kFiles.size(); ++i) {
      const Routed out = engine.route_out(kFiles[i]);
      ASSERT_TRUE(out.status.ok()) << kFiles[i];
      EXPECT_THAT(out.path, EndsWith("/" + kFiles[i]));
      job.disk.write_all(out.path, content_of(10 * scope.rank + static_cast<int>(i), 5000));
    }
    const Routed directory = engine.route_out(kDirectory);
    ASSERT_TRUE(directory.status.ok());
    job.disk.make_directories(directory.path + "of rank");
    job.disk.write_all(directory.path + kInDirectory, content_of(scope.rank, 100));
    const std::int32_t value = 7 + scope.rank;
    EXPECT_TRUE(engine.save("my group/my value", region(&value, {})).ok());
    engine.commit();
    EXPECT_EQ(engine.level("a"), Level::persistent);
    engine.finalize();
  }));
  EXPECT_THAT(routed_files(job.disk), IsEmpty());
}

void expect_all_back(SimulatedJob& job) {
  expect_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    ASSERT_EQ(engine.open(), "a");
    for (std::size_t i = 0; i < kFiles.size(); ++i) {
      const Routed in = engine.route_in(kFiles[i]);
      ASSERT_TRUE(in.status.ok()) << kFiles[i];
      EXPECT_THAT(in.path, EndsWith("/" + kFiles[i]));
      EXPECT_EQ(job.disk.read_all(in.path), content_of(10 * scope.rank + static_cast<int>(i), 5000));
    }
    const Routed directory = engine.route_in(kDirectory);
    ASSERT_TRUE(directory.status.ok());
    EXPECT_EQ(job.disk.read_all(directory.path + kInDirectory), content_of(scope.rank, 100));
    std::int32_t value = 0;
    EXPECT_TRUE(engine.load("my group/my value", mutable_region(&value, {})).ok());
    EXPECT_EQ(value, 7 + scope.rank);
    engine.close();
  }));
  EXPECT_THAT(routed_files(job.disk), IsEmpty());
}

TEST_P(NamesWithSpaces, ComeBackFromTheStoresAndFromThePrefix) {
  commit(job);
  expect_all_back(job);
  job.disk.remove_all("/nodes/node0");
  expect_all_back(job);
}

TEST_P(NamesWithSpaces, LieOnThePrefixAsTheyAreCalled) {
  commit(job);
  std::vector<std::string> plain = kFiles;
  plain.push_back(kDirectory + kInDirectory);
  const auto disk = job.disk.snapshot();
  for (const std::string& name : plain) {
    int found = 0;
    for (const auto& [path, entry] : disk) {
      found += path.starts_with(job.options.persistent.path + "/a.") && path.ends_with("/" + name) ? 1 : 0;
    }
    EXPECT_EQ(found, job.ranks) << name;
  }
}

/// A command of the log can be pasted.
TEST_P(NamesWithSpaces, TheLogQuotesPathsInCommands) {
  commit(job);
  EXPECT_TRUE(job.logged("kedge drop '/nodes/node0/my stores/kedge-1000-test-")) << job.log().back();
  EXPECT_TRUE(job.log().back().ends_with("'")) << job.log().back();
  OnEachRank met(job.ranks);
  expect_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    met.put(scope.rank, failure_of([&] { (void)engine.open(Source{job.options.persistent.path, "", "b"}); }));
  }));
  ASSERT_TRUE(met.same());
  EXPECT_EQ(met.same()->code, ErrorCode::not_found);
  EXPECT_THAT(met.same()->message, HasSubstr("kedge ls '/prefix/my check points' lists the checkpoints"));
}

INSTANTIATE_TEST_SUITE_P(Storage, NamesWithSpaces, testing::Bool(),
                         [](const auto& each) { return each.param ? "Memory" : "Block"; });

}  // namespace
}  // namespace kedge::faults::names_with_spaces_test
