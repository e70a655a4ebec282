// kedge drain and kedge scavenge of outputs whose job went on with fewer ranks than made them, also where the
// checkpoint of these is damaged.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/attempt.hpp"
#include "format/on_disk.hpp"
#include "unit/drain/scavenge_fixture.hpp"

namespace kedge::drain::outputs_of_other_ranks_test {
namespace {

/// The job went on with fewer ranks than made the output.
class AfterFewerRanks : public DrainAlone {
 protected:
  void leave_output_and_go_on_with_one_rank(bool with_checkpoint) {
    (void)drained();
    leave_output();
    testing::InProcessJob job(1, options);
    for (const auto& outcome : job.start([&](Engine&engine, Communicator& /*communicator*/) {
           if (with_checkpoint) {
             engine.create("b");
             engine.commit();
             engine.create("c");
             const std::vector<double> state(100000, 7.0);
             engine.save("state", {state.data(), DataType::float64, Shape{state.size()}});
             engine.commit();
           }
           engine.finalize();
         })) {
      ASSERT_TRUE(outcome.returned());
    }
    plots_ = flushed_plots();
  }
  /// In what only the checksums of the data show.
  void damage_containers_of_one_rank() const {
    fs::FileSystem& files = *world.file_system;
    std::vector<std::byte> first(format::kSuperblockBytes);
    std::size_t found = 0;
    for (const std::string& name : files.list(store(0))) {
      const std::string path = fs::join(store(0), name);
      if (!name.starts_with("rank-")) continue;
      const auto file = files.open(path, fs::Access::read_write);
      if (file->status().size_bytes <= first.size()) continue;
      file->read(0, first);
      std::uint32_t world_size = 0;
      (void)attempt([&] { world_size = format::decode_superblock(first, path).commit.world_size; });
      if (world_size != 1) continue;
      ++found;
      std::vector<std::byte> middle(1);
      const std::uint64_t at = file->status().size_bytes / 2;
      file->read(at, middle);
      middle[0] ^= std::byte{1};
      file->write(at, middle);
    }
    ASSERT_GT(found, 0U);
  }
  void expect_flushed(const std::string& words, const std::vector<std::string>& parts) const {
    for (const std::string& part : parts) EXPECT_NE(words.find(part), std::string::npos) << words;
    EXPECT_EQ(flushed_plots(), plots_ + 1);
  }

 private:
  std::size_t plots_ = 0;
};

TEST_F(AfterFewerRanks, DrainTakesTheCheckpointAndTheOutputsOfTheOthers) {
  leave_output_and_go_on_with_one_rank(true);
  expect_flushed(drained(), {"drained c (generation ", "; and 1 output of other numbers of ranks"});
  EXPECT_EQ(drained().find("nothing to drain: c (generation "), 0U);
}

TEST_F(AfterFewerRanks, DrainTakesOutputsAlone) {
  leave_output_and_go_on_with_one_rank(false);
  expect_flushed(drained(), {"drained 1 output; a (generation "});
  EXPECT_EQ(drained().find("nothing to drain: a (generation "), 0U);
}

TEST_F(AfterFewerRanks, DrainTakesOutputsAlthoughTheCheckpointIsDamaged) {
  leave_output_and_go_on_with_one_rank(true);
  damage_containers_of_one_rank();
  expect_flushed(drained(), {"nothing to drain: a (generation ", " is the newest that can be recovered",
                             "; and 1 output of other numbers of ranks"});
}

TEST_F(AfterFewerRanks, ScavengeTakesOutputsAlthoughTheCheckpointIsDamaged) {
  leave_output_and_go_on_with_one_rank(true);
  damage_containers_of_one_rank();
  expect_flushed(scavenge_store(store(0), options, world),
                 {"a (generation ", " is the newest that can be recovered", "; and 1 output", "the copies are kept"});
}

TEST_F(AfterFewerRanks, ScavengeTakesThemToo) {
  leave_output_and_go_on_with_one_rank(true);
  expect_flushed(scavenge_store(store(0), options, world), {"flushed c (generation ", "; and 1 output"});
}

TEST_F(AfterFewerRanks, ScavengeKeepsTheCopiesOfOutputsThatAreNotWhole) {
  options.redundancy.every = 0;
  leave_output_and_go_on_with_one_rank(true);
  const std::string first = scavenge_store(store(0), options, world);
  EXPECT_NE(first.find("flushed c (generation "), std::string::npos) << first;
  EXPECT_NE(first.find("; the copies are kept, because they have parts of incomplete outputs"), std::string::npos);
  const std::string second = scavenge_store(store(1), options, world);
  expect_flushed(second, {"c (generation ", "is already on the prefix; and 1 output"});
  EXPECT_EQ(second.find("; the copies are kept"), std::string::npos) << second;
}

}  // namespace
}  // namespace kedge::drain::outputs_of_other_ranks_test
