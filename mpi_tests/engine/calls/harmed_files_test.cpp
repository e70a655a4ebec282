// What another process does to files of the store that the job has mapped: an error on all ranks, never a signal. On
// the real memory-backed filesystem, since only that sends one.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/attempt.hpp"
#include "base/text.hpp"
#include "harness/real_stores.hpp"

namespace kedge::faults::harmed_files_test {
namespace {

constexpr int kHarmed = 1;                            // the rank whose file it is
constexpr std::size_t kLarge = std::size_t{1} << 18;  // doubles, 2 MiB: more than is saved without a look at the file
constexpr std::size_t kSmall = 1000;

using Corruption = std::function<void(const std::string& path)>;

struct Case {
  std::string name;
  Corruption harm;
  std::string says;
  friend void PrintTo(const Case& one, std::ostream* out) { *out << one.name; }
};

class HarmedFiles : public OnRealStores, public testing::WithParamInterface<Case> {
 protected:
  void harm(int rank) const {
    if (rank != kHarmed) return;
    std::vector<std::string> paths;  // with the one that the next commit will be written to, if there is one yet
    for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
      if (entry.path().filename().string().starts_with(compose("rank-{}.", rank))) paths.push_back(entry.path());
    }
    ASSERT_FALSE(paths.empty());
    std::ranges::for_each(paths, GetParam().harm);
  }
  static void commit(Engine& engine) {
    const std::vector<double> values(kSmall, 1);
    engine.create("a");
    EXPECT_TRUE(engine.save("v", region(std::span(values))).ok());
    engine.commit();
  }
  /// The same text on all ranks: what happened to the file, whose it is and that it is the store's.
  void expect_told(const std::optional<Failure>& failure, ErrorCode code = ErrorCode::io) const {
    ASSERT_TRUE(failure);
    EXPECT_EQ(failure->code, code);
    EXPECT_EQ(failure->rank, kHarmed);
    EXPECT_TRUE(says(failure->message, {GetParam().says})) << failure->message;
    EXPECT_TRUE(failure->path.starts_with(directory)) << failure->path;
  }
};

TEST_P(HarmedFiles, SaveNotices) {
  const std::vector<double> values(kLarge, 1);
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    engine.create("a");
    EXPECT_TRUE(engine.save("first", region(std::span(values))).ok());
    harm(scope.rank);
    EXPECT_EQ(engine.save("second", region(std::span(values))).ok(), scope.rank != kHarmed);
    expect_told(attempt([&] { engine.commit(); }));
  }));
}

TEST_P(HarmedFiles, CommitNotices) {
  const std::vector<double> values(kSmall, 1);
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    engine.create("a");
    EXPECT_TRUE(engine.save("v", region(std::span(values))).ok());
    harm(scope.rank);
    expect_told(attempt([&] { engine.commit(); }));
    commit(engine);  // in another file
  }));
}

TEST_P(HarmedFiles, LoadNotices) {
  expect_all_returned(job.start([&](RankScope& scope) {
    std::vector<double> values(kSmall);
    Engine engine = scope.make_engine();
    commit(engine);
    EXPECT_EQ(engine.open(), "a");
    harm(scope.rank);
    EXPECT_EQ(engine.load("v", mutable_region(std::span(values))).ok(), scope.rank != kHarmed);
    expect_told(attempt([&] { engine.close(); }), ErrorCode::corrupt);
  }));
}

TEST_P(HarmedFiles, ProtectionNotices) {
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    commit(engine);
    harm(scope.rank);
    expect_told(attempt([&] { engine.wait("a", Level::protected_); }));
    EXPECT_EQ(engine.level("a"), Level::local);
  }));
}

INSTANTIATE_TEST_SUITE_P(Harms, HarmedFiles,
                         testing::Values(Case{"removed", [](const std::string& path) { std::filesystem::remove(path); },
                                              "another process removed a file"},
                                         Case{"truncated",
                                              [](const std::string& path) { std::filesystem::resize_file(path, 4096); },
                                              "truncated by another process"}),
                         [](const auto& one) { return one.param.name; });

}  // namespace
}  // namespace kedge::faults::harmed_files_test
