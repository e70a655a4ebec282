#include "drain/scavenge.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>  // NOLINT(modernize-deprecated-headers): mkdtemp

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/attempt.hpp"
#include "fs/tree.hpp"
#include "harness/forwarding_file_system.hpp"
#include "kedge/engine.hpp"
#include "kedge/testing/in_process_job.hpp"

namespace kedge::drain::scavenge_test {
namespace {

/// Something happens between the look into a directory, once, and what is made of it.
class Interrupted final : public faults::ForwardingFileSystem {
 public:
  Interrupted(std::shared_ptr<fs::FileSystem> inner, std::string end, std::function<void()> then)
      : ForwardingFileSystem(std::move(inner)), end_(std::move(end)), then_(std::move(then)) {}
  [[nodiscard]] std::vector<std::string> list(const std::string& path) override {
    auto names = inner().list(path);
    if (path.ends_with(end_)) std::exchange(then_, [] {})();
    return names;
  }

 private:
  std::string end_;
  std::function<void()> then_;
};

/// A prefix without any space that is free.
class Full final : public faults::ForwardingFileSystem {
 public:
  using ForwardingFileSystem::ForwardingFileSystem;
  [[nodiscard]] fs::Space space(const std::string& path) override {
    fs::Space space = inner().space(path);
    space.free_bytes = 0;
    return space;
  }
};

/// Two nodes with a rank each, whose job committed "a" and flushed nothing.
class Scavenge : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = ::testing::TempDir() + "kedge-scavenge-XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    directory = name;
    options.store.path = directory + "/{node}";
    options.persistent.path = directory + "/prefix";
    options.persistent.every = 0;
    options.topology.ranks_per_node = 1;
    options.log.level = LogLevel::off;
    testing::InProcessJob job(2, options);
    for (const auto& outcome : job.start([](Engine&engine, Communicator& /*communicator*/) {
           const std::vector<double> state(100, 7.0);
           engine.create("a");
           engine.save("state", {state.data(), DataType::float64, Shape{state.size()}});
           engine.commit();
         })) {
      ASSERT_TRUE(outcome.returned());
    }
  }
  void TearDown() override { (void)fs::remove_tree(*world.file_system, directory); }

  [[nodiscard]] std::string store(int node) const {
    const std::string root = directory + "/node" + std::to_string(node);
    return fs::join(root, world.file_system->list(root).at(0));
  }

  std::string directory;
  Options options;
  engine::Environment world = engine::Environment::system();
};

TEST_F(Scavenge, TheLastNodeFlushes) {
  EXPECT_NE(scavenge_store(store(1), options, world).find("1 of 2 containers have been copied"), std::string::npos);
  EXPECT_NE(scavenge_store(store(0), options, world).find("; flushed a (generation "), std::string::npos);
}

TEST_F(Scavenge, WhatIsCopiedNeedsNoSpace) {
  engine::Environment full = world;
  full.file_system = std::make_shared<Full>(world.file_system);
  const auto failure = attempt([&] { (void)scavenge_store(store(1), options, full); });
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->code, ErrorCode::no_space);
  (void)scavenge_store(store(1), options, world);
  EXPECT_NE(scavenge_store(store(1), options, full).find("1 of 2 containers have been copied"), std::string::npos);
}

// It has given up on the lock by the time that the other one has decided.
TEST_F(Scavenge, ACopyThatComesWhileAnotherNodeDecidesIsNotLeftAlone) {
  engine::Environment first = world;
  std::string of_second;
  first.file_system = std::make_shared<Interrupted>(world.file_system, "/scavenged",
                                                    [&] { of_second = scavenge_store(store(1), options, world); });
  const std::string of_first = scavenge_store(store(0), options, first);
  EXPECT_NE(of_second.find("another node is flushing"), std::string::npos) << of_second;
  EXPECT_NE(of_first.find("; flushed a (generation "), std::string::npos) << of_first;
}

}  // namespace
}  // namespace kedge::drain::scavenge_test
