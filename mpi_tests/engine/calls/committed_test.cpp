// Where the regions of the last commit lie: the saved bytes, until the engine works on.
#include <array>
#include <cstring>

#include "harness/engine_checks.hpp"
#include "kedge/for_bindings.hpp"

namespace kedge::faults::committed_test {
namespace {

std::string at(const Engine& engine, std::string_view name) {
  const std::span<const std::byte> bytes = ForBindings::committed(engine, name);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void save(Engine& engine, std::string_view name, std::string_view text) {
  EXPECT_TRUE(engine.save(name, {text.data(), DataType::opaque, {text.size()}}).ok());
}

TEST(Committed, GivesTheBytesOfTheLastCommitOnMemory) {
  SimulatedJob job(3);
  expect_returned(job.start([](RankScope& scope) {
    Engine engine = scope.make_engine();
    EXPECT_EQ(at(engine, "a"), "") << "nothing was committed yet";
    const std::string mine = "rank " + std::to_string(scope.rank);
    for (const std::string& more : {std::string("first"), std::string("second"), std::string(100'000, 'x')}) {
      engine.create(more.substr(0, 6));
      save(engine, "a", mine);
      save(engine, "b", more);
      save(engine, "empty", "");
      EXPECT_EQ(at(engine, "a"), "") << "what is being written is not committed";
      engine.commit();
      EXPECT_EQ(at(engine, "a"), mine);
      EXPECT_EQ(at(engine, "b"), more);
      EXPECT_EQ(at(engine, "empty"), "");
      EXPECT_EQ(at(engine, "c"), "") << "there is no such region";
    }
  }));
}

TEST(Committed, GivesNothingOfWhatWasDroppedOrReplaced) {
  SimulatedJob job(3);
  expect_returned(job.start([](RankScope& scope) {
    Engine engine = scope.make_engine();
    commit_value(engine, "one", 1);
    engine.create("two");
    save(engine, "value", "dropped");
    engine.abandon();
    EXPECT_EQ(at(engine, "value"), "");
  }));
}

TEST(Committed, GivesNothingOnBlockStorage) {
  SimulatedJob job(3, SimulatedJob::block_disk());
  expect_returned(job.start([](RankScope& scope) {
    Engine engine = scope.make_engine();
    engine.create("one");
    save(engine, "a", "text");
    engine.commit();
    EXPECT_EQ(at(engine, "a"), "");
  }));
}

}  // namespace
}  // namespace kedge::faults::committed_test
