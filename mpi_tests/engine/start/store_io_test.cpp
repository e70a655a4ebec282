// Which way large writes go (store.io): by the options, and where they leave it open by what rank 0 measures.
#include "start/store_io.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "harness/probed_file_system.hpp"
#include "harness/several_starts.hpp"

namespace kedge::faults::store_io_test {
namespace {

const fs::WriteProbe kDirectIsFaster{1e9, 2e9, ""};
const fs::WriteProbe kNoGain{1e9, 1.05e9, ""};
const fs::WriteProbe kSlower{1e9, 5e8, ""};
const fs::WriteProbe kRefused{0, 0, "not supported"};
const fs::WriteProbe kFails{0, 0, "throw"};

struct Chosen {
  bool direct = false;  ///< the same on every rank
  int probes = 0;       ///< of all ranks
  std::string log;
};

/// Rank 0 measures `probe`, the other the opposite.
Chosen choose(Io io, bool durable, bool memory_backed, const fs::WriteProbe& probe) {
  FaultyDisk disk(SimulatedJob::block_disk());
  disk.make_directories("/store");
  Options options;
  options.io = io;
  options.store.durable = durable;
  Options::Log log_options;
  Chosen chosen;
  log_options.sink = [&](LogLevel, std::string_view line) { chosen.log += line; };
  const Log log(log_options);
  std::vector<std::shared_ptr<Probed>> systems;
  for (int rank = 0; rank < 2; ++rank) {
    const bool is_faster = probe.direct_bytes_per_s > probe.buffered_bytes_per_s;
    systems.push_back(std::make_shared<Probed>(disk.view(rank), rank == 0   ? probe
                                                                : is_faster ? kRefused
                                                                            : kDirectIsFaster));
  }
  testing::InProcessWorld world(2);
  expect_all_returned(world.run_connected([&](Communicator& communicator) {
    const auto rank = static_cast<std::size_t>(communicator.rank());
    const LogicalRank mine{static_cast<std::uint32_t>(rank)};
    store::NodeStore store(systems[rank], options.store, {"/store", memory_backed}, mine);
    start::choose_store_io(comm::Group(communicator, std::chrono::hours(1)), *systems[rank], options, store.space, log);
    store.new_files.discard_file(store.new_files.begin_file({store::FileKind::container, 0}));
  }));
  chosen.direct = systems[0]->direct != 0;
  chosen.probes = systems[0]->probes + systems[1]->probes;
  EXPECT_EQ(systems[1]->direct != 0, chosen.direct);
  return chosen;
}

TEST(StoreIo, AutomaticIsDirectWhereDataIsSyncedToADeviceAndThatIsFaster) {
  EXPECT_TRUE(choose(Io::automatic, true, false, kDirectIsFaster).direct);
  for (const fs::WriteProbe& probe : {kNoGain, kSlower, kRefused, kFails}) {
    const Chosen chosen = choose(Io::automatic, true, false, probe);
    EXPECT_FALSE(chosen.direct);
    EXPECT_EQ(chosen.probes, 1);
    EXPECT_NE(chosen.log.find("large writes go through the page cache"), std::string::npos) << chosen.log;
  }
}

TEST(StoreIo, NothingIsMeasuredWhereTheAnswerIsKnown) {
  for (const Chosen& chosen :
       {choose(Io::automatic, false, false, kDirectIsFaster), choose(Io::automatic, true, true, kDirectIsFaster),
        choose(Io::direct, true, true, kDirectIsFaster), choose(Io::buffered, true, false, kDirectIsFaster)}) {
    EXPECT_FALSE(chosen.direct);
    EXPECT_EQ(chosen.probes, 0);
  }
}

TEST(StoreIo, DirectIsDirectWhereThatIsPossible) {
  for (const bool durable : {false, true}) {
    EXPECT_TRUE(choose(Io::direct, durable, false, kSlower).direct);
    const Chosen refused = choose(Io::direct, durable, false, kRefused);
    EXPECT_FALSE(refused.direct);
    EXPECT_NE(refused.log.find("direct writes are unavailable: not supported"), std::string::npos) << refused.log;
  }
}

}  // namespace
}  // namespace kedge::faults::store_io_test
