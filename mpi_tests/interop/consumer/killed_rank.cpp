// A user's test: kills rank 2 at several of its messages, takes its node away each time and starts the job again.
// No MPI, no mpirun.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <kedge/kedge.hpp>
#include <kedge/testing/in_process_job.hpp>
#include <stdexcept>
#include <string>

int main(int count, char** words) {
  if (count != 2) return 2;
  const std::filesystem::path place = words[1];
  kedge::Options options;
  options.store.path = place / "{node}";  // node0 to node3, one rank on each
  options.persistent.path = place / "prefix";
  ::setenv("KEDGE_TEST_RANKS_PER_NODE", "1", 1);
  options.log.level = kedge::LogLevel::off;
  kedge::testing::InProcessJob job(4, options);

  std::atomic<int> committed = 0;
  const auto advance = [&](kedge::Engine& engine, kedge::Communicator& communicator) {
    int step = 0;
    kedge::State state;
    state.add("step", step);
    engine.restore(state);
    if (step < committed) throw std::runtime_error("a checkpoint is lost");
    ++step;
    engine.checkpoint("step-" + std::to_string(step), state);
    if (communicator.rank() == 0) committed = step;
  };
  const auto undisturbed = [&] {
    const auto ends = job.start(advance);
    return std::all_of(ends.begin(), ends.end(), [](const auto& end) { return end.returned(); });
  };

  std::uint64_t event = 0;
  for (bool killed = undisturbed(); killed; event += 32) {  // until a start ends before it comes to that message
    job.stop_at(2, event);
    killed = job.start(advance)[2].died;
    std::filesystem::remove_all(place / "node2");
    if (undisturbed()) continue;
    std::printf("the job did not go on after a kill at event %lu\n", static_cast<unsigned long>(event));
    return 1;
  }
  if (event < 320) return 1;
  std::printf("the checkpoint was there after every kill; the newest is step-%d\n", committed.load());
}
