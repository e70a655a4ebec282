// A program may change its directory once it has an engine: paths stay where they were.
#include <gtest/gtest.h>

#include <filesystem>
#include <vector>

#include "harness/real_run.hpp"
#include "kedge/kedge.hpp"

namespace kedge::faults::relative_paths_test {
namespace {

std::size_t entries_of(const std::string& directory) {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(directory)) ++count;
  return count;
}

TEST(RelativePaths, AreThoseOfTheStart) {
  RealRun run("relative");
  run.options.store.path = "store";
  run.options.persistent.path = "prefix";
  run.options.events.path = "events";
  const auto before = std::filesystem::current_path();
  std::filesystem::create_directories(run.directory + "/other");
  std::filesystem::current_path(run.directory);
  for (const int start : {1, 2}) {
    std::filesystem::current_path(run.directory);
    Engine engine(single_process(), run.options);
    std::filesystem::current_path(run.directory + "/other");
    std::vector<double> field(1000, start);
    State state;
    state.add("field", field);
    EXPECT_EQ(engine.restore(state).has_value(), start == 2);
    for (int step = 0; step < 3; ++step) engine.checkpoint("step-" + std::to_string(10 * start + step), state);
    run.options.open.chained = true;  // in one process, the next one goes on
    engine.finalize();
  }
  std::filesystem::current_path(before);
  EXPECT_EQ(entries_of(run.directory + "/other"), 0U);
  EXPECT_EQ(entries_of(run.directory + "/store"), 1U);
  EXPECT_EQ(entries_of(run.directory + "/events"), 1U);
}

}  // namespace
}  // namespace kedge::faults::relative_paths_test
