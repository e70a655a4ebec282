// Loads on another number of ranks: every element of every want is right and nothing else changes, each touched block
// is read once, memory is bounded, and what fails on one rank fails on all alike.
#include "arrays/load_all.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <mutex>

#include "base/text.hpp"
#include "harness/forwarding_communicator.hpp"
#include "harness/saved_arrays.hpp"
#include "harness/seeds.hpp"
#include "harness/testing_world.hpp"

namespace kedge::arrays::load_all_test {
namespace {

using faults::RandomChoices;
using format::kBlockBytes;
using testing::HasSubstr;

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20U;

/// A commit, and the job that loads it.
struct Job {
  std::uint32_t logical_ranks = 1;
  std::vector<SavedRegion> saved;
  std::vector<int> steward_of;                     ///< by region
  std::vector<std::vector<WantedMemory>> wants{};  ///< by process
  std::uint64_t buffer_bytes = 16 * kMiB;
  std::function<void(int process, const BlockToRead&)> before_read = [](int, const BlockToRead&) {};
  std::function<void(Communicator&, const std::function<void(Communicator&)>&)> within =
      [](Communicator& communicator, const auto& body) { body(communicator); };

  [[nodiscard]] int processes() const { return static_cast<int>(wants.size()); }

  // What happened.
  std::mutex mutex;
  std::multiset<std::pair<std::size_t, std::uint64_t>> read;
  std::vector<LoadCounts> counts{};
  std::string failure{};  ///< the same on all processes
  ErrorCode code{};

  void run() {
    counts.resize(wants.size());
    testing::InProcessWorld world(processes());
    const auto outcomes = world.run_connected(
        [&](Communicator& communicator) { within(communicator, [&](Communicator& one) { run_process(one); }); });
    for (std::size_t p = 0; p < outcomes.size(); ++p) {
      EXPECT_FALSE(outcomes[p].died);
      EXPECT_EQ(outcomes[p].exception != nullptr, outcomes[p].failure.has_value());
      const std::string message = outcomes[p].failure ? outcomes[p].failure->message : std::string();
      if (p == 0) failure = message;
      if (p == 0 && outcomes[p].failure) code = outcomes[p].failure->code;
      EXPECT_EQ(message, failure) << "on process " << p;
    }
  }

  void run_process(Communicator& communicator) {
    const comm::Group group(communicator, std::chrono::seconds(60));
    const auto me = static_cast<std::size_t>(group.rank());
    std::vector<Offer> offers;
    std::vector<std::size_t> regions;
    for (std::size_t i = 0; i < saved.size(); ++i) {
      if (steward_of[i] != group.rank()) continue;
      offers.push_back(saved[i].offer);
      regions.push_back(i);
    }
    std::vector<Want> mine;
    for (const WantedMemory& memory : wants[me]) mine.push_back(memory.want());
    LoadInput input{mine, offers, logical_ranks, buffer_bytes, {}, {}, {}};
    input.checksum = [&](std::uint32_t offer, std::uint64_t block) {
      return StoredChecksum{saved[regions[offer]].crc(block), 0};
    };
    input.read = [&](const BlockToRead& block, std::span<std::byte> buffer) {
      before_read(group.rank(), block);
      return read_block(block, buffer, group.rank());
    };
    input.deliver = [&](const Delivery& delivery) { copy_to_memory(delivery, wants[me][delivery.want].data()); };
    counts[me] = load_all(group, input);
  }

  std::span<const std::byte> read_block(const BlockToRead& block, std::span<std::byte> buffer, int process) {
    for (std::size_t i = 0; i < saved.size(); ++i) {
      const SavedRegion& region = saved[i];
      if (region.offer.name != block.region.name || region.offer.logical_rank != block.region.logical_rank) continue;
      const std::lock_guard lock(mutex);
      read.insert({i, block.offset / kBlockBytes});
      EXPECT_EQ(block.offset % kBlockBytes, 0U);
      EXPECT_EQ(block.size_bytes, region.block_bytes(block.offset / kBlockBytes));
      EXPECT_EQ(block.region.size_bytes, region.bytes.size());
      EXPECT_EQ(block.region.file_offset, region.offer.file_offset);
      const auto bytes = std::span<const std::byte>(region.bytes).subspan(block.offset, block.size_bytes);
      if (region.offer.is_mapped) {
        EXPECT_EQ(process, steward_of[i]);
        return bytes;
      }
      EXPECT_EQ(block.checksum.crc, region.crc(block.offset / kBlockBytes));
      EXPECT_EQ(buffer.size(), block.size_bytes);
      std::memcpy(buffer.data(), bytes.data(), bytes.size());
      return buffer;
    }
    ADD_FAILURE() << "no such region: " << block.region.name << " of " << block.region.logical_rank;
    return buffer;
  }

  void add_array(std::uint64_t array, const Shape& shape, const std::vector<Box>& blocks) {
    for (std::uint32_t rank = 0; rank < blocks.size(); ++rank) {
      if (blocks[rank].dimensions != shape.dimensions()) continue;  // a scalar is saved by one rank alone
      add(saved_region(compose("array{}", array), array, shape, blocks[rank], Shard{}, rank));
    }
  }
  void add(SavedRegion region) {
    region.offer.file_offset = 4096 + 65536 * saved.size();
    steward_of.push_back(static_cast<int>(region.offer.logical_rank) % processes());
    saved.push_back(std::move(region));
  }

  /// All that was asked for, and no block read twice or for nothing.
  void check() const {
    EXPECT_EQ(failure, "");
    std::vector<Want> all;
    for (std::size_t p = 0; p < wants.size(); ++p) {
      for (const WantedMemory& memory : wants[p]) {
        EXPECT_EQ(memory.wrong_elements(), 0U) << "process " << p << ", " << memory.want().name;
        all.push_back(memory.want());
      }
      EXPECT_LE(counts[p].buffer_bytes_max, buffer_bytes + kBlockBytes);
    }
    const auto touched = touched_blocks(saved, all);
    EXPECT_TRUE(std::ranges::equal(read, touched)) << read.size() << " blocks read, " << touched.size() << " touched";
  }
};

Shape shape_at_random(RandomChoices& random) {
  const std::size_t dimensions = random.below(9);
  Point extents{};
  const std::uint64_t most = dimensions > 4 ? 3 : dimensions > 2 ? 9 : 60;
  for (std::size_t d = 0; d < dimensions; ++d) extents[d] = random.one_in(40) ? 0 : 1 + random.below(most);
  return Shape(std::span<const std::uint64_t>(extents).first(dimensions));
}

void want_at_random(Job& job, int process, std::uint64_t array, const Shape& shape, RandomChoices& random) {
  const Box box = box_at_random(shape, random);
  std::vector<std::uint64_t> margins;
  if (random.one_in(2)) {
    for (std::size_t d = 0; d < shape.dimensions(); ++d) margins.push_back(random.below(2));
  }
  job.wants[static_cast<std::size_t>(process)].emplace_back(block_of(compose("array{}", array), shape, box), array,
                                                            margins);
}

/// 0 to 8 dimensions, zero extents, more processes than rows, prime numbers of them, small buffers.
TEST(Loads, R10_EachElementIsItsGlobalIndexOnAnyNumberOfProcesses) {
  faults::for_each_seed({150, 3000}, "unit_arrays", [](std::uint64_t seed) {
    RandomChoices random(seed);
    Job job;
    job.logical_ranks = random.one_of({1U, 2U, 5U, 8U, 13U, 150U});
    const int processes = random.one_of({1, 2, 3, 5, 7, 12, 17});
    job.wants.resize(static_cast<std::size_t>(processes));
    job.buffer_bytes = random.one_of({std::uint64_t{10'000}, std::uint64_t{100'000}, 16 * kMiB});
    for (std::uint64_t array = 1 + random.below(3); array > 0; --array) {
      const Shape shape = shape_at_random(random);
      job.add_array(array, shape, cut_at_random(box_of(shape), job.logical_ranks, random));
      const bool mapped = random.one_in(2);
      for (SavedRegion& region : job.saved) region.offer.is_mapped = mapped && !random.one_in(5);
      if (random.one_in(2)) {  // the program's own decomposition
        const auto blocks = cut_at_random(box_of(shape), static_cast<std::uint64_t>(processes), random);
        for (int p = 0; p < processes; ++p) {
          const Box& block = blocks[static_cast<std::size_t>(p)];
          if (block.dimensions != shape.dimensions()) continue;
          job.wants[static_cast<std::size_t>(p)].emplace_back(block_of(compose("array{}", array), shape, block), array);
        }
      }
      for (std::uint64_t more = random.below(6); more > 0; --more) {
        want_at_random(job, random.int_below(processes), array, shape, random);
      }
    }
    job.run();
    job.check();
  });
}

/// Regions of several blocks.
TEST(Loads, R10_LargeRegionsInSmallBuffers) {
  for (const bool mapped : {true, false}) {
    for (const int processes : {3, 4}) {
      Job job;
      job.logical_ranks = 4;
      job.buffer_bytes = 3 * kMiB;
      job.wants.resize(static_cast<std::size_t>(processes));
      const Shape shape({64, 96, 700});
      job.add_array(1, shape, cut_evenly(box_of(shape), 4, 0));
      for (SavedRegion& region : job.saved) region.offer.is_mapped = mapped;
      const auto pencils = cut_evenly(box_of(shape), static_cast<std::uint64_t>(processes), 2);
      for (std::size_t p = 0; p < pencils.size(); ++p) {
        job.wants[p].emplace_back(block_of("array1", shape, pencils[p]), 1, std::vector<std::uint64_t>{1, 0, 2});
      }
      job.run();
      job.check();
      EXPECT_GT(job.counts[0].rounds, 1U);
      EXPECT_EQ(job.read.size(), 4U * 3);
    }
  }
}

TEST(Loads, R3_VeryManyProcessesAndOne) {
  for (const int processes : {1, faults::full_test() ? 1000 : 127}) {
    Job job;
    job.logical_ranks = 200;
    job.wants.resize(static_cast<std::size_t>(processes));
    const Shape shape({400, 30});
    job.add_array(1, shape, cut_evenly(box_of(shape), 200, 0));
    const auto blocks = cut_evenly(box_of(shape), static_cast<std::uint64_t>(processes), 0);  // most without elements
    for (std::size_t p = 0; p < blocks.size(); ++p) job.wants[p].emplace_back(block_of("array1", shape, blocks[p]), 1);
    job.run();
    job.check();
  }
}

/// Of a rank, the only one of a name, and replicated ones: on three processes, saved by five ranks.
TEST(Loads, R2_RegionsThatAreNotBlocks) {
  for (const bool mapped : {true, false}) {
    Job job;
    job.logical_ranks = 5;
    job.wants.resize(3);
    for (std::uint32_t rank = 0; rank < 5; ++rank) {
      const Shape own{rank + 3};
      job.add(saved_region("random", 10 + rank, own, box_of(own), {}, rank));
      job.add(saved_region("parameters", 20, Shape({2, 7}), box_of(Shape({2, 7})), Replicated{}, rank));
    }
    job.add(saved_region("level2/box17", 30, Shape({4, 4}), box_of(Shape({4, 4})), {}, 3));
    for (SavedRegion& region : job.saved) region.offer.is_mapped = mapped;
    for (std::uint32_t rank = 0; rank < 5; ++rank) {
      const Want want{"random", DataType::uint64, {}, Shape{rank + 3}, LogicalRank{rank}, {}};
      job.wants[rank % 2].emplace_back(want, 10 + rank);
    }
    for (auto& wants : job.wants) {
      wants.emplace_back(Want{"parameters", DataType::uint64, {}, Shape({2, 7}), Replicated{}, {}}, 20U);
      wants.emplace_back(Want{"level2/box17", DataType::uint64, {}, Shape({4, 4}), OnlyOne{}, {}}, 30U,
                         std::vector<std::uint64_t>{1, 1});
    }
    job.run();
    EXPECT_EQ(job.failure, "");
    for (const auto& wants : job.wants) {
      for (const WantedMemory& memory : wants) EXPECT_EQ(memory.wrong_elements(), 0U) << memory.want().name;
    }
    EXPECT_EQ(job.read.size(), 5U + (mapped ? 3 : 1) + 1) << "replicated: its own copy, or one for all";
  }
}

TEST(Loads, NobodyWantsAnything) {
  Job job;
  job.wants.resize(3);
  job.add_array(1, Shape{30}, {box_of(Shape{30})});
  job.run();
  job.check();
  EXPECT_TRUE(job.read.empty());
}

// What fails ---------------------------------------------------------------------------------------------------------

/// Rows that three processes want, saved by four ranks.
void rows(Job& job) {
  job.logical_ranks = 4;
  job.wants.resize(3);
  job.buffer_bytes = 20'000;
  const Shape shape({12, 500});
  job.add_array(1, shape, cut_evenly(box_of(shape), 4, 0));
  const auto blocks = cut_evenly(box_of(shape), 3, 0);
  for (std::size_t p = 0; p < 3; ++p) job.wants[p].emplace_back(block_of("array1", shape, blocks[p]), 1);
}

/// What all processes get if one of them asks for this.
std::string failure_of(Want want, ErrorCode code) {
  std::string failure;
  for (const std::size_t odd : {0U, 2U}) {
    Job job;
    rows(job);
    job.add(saved_region("own", 7, Shape{5}, box_of(Shape{5}), {}, 1));
    job.add(saved_region("same", 8, Shape{5}, box_of(Shape{5}), Replicated{}, 2));
    job.wants[odd].emplace_back(want, 1);
    job.run();
    EXPECT_EQ(job.code, code) << job.failure;
    EXPECT_TRUE(job.read.empty()) << "before anything is read";
    if (odd == 0) failure = job.failure;
    EXPECT_EQ(job.failure, failure);
  }
  return failure;
}

TEST(Loads, R46_AWantThatCannotBeServedFailsOnAllRanksAlike) {
  const Shape shape({12, 500});
  Want want = block_of("array1", shape, box_at(Shape({2, 3}), Shape({4, 5})));
  Want changed = want;
  changed.dtype = DataType::float64;
  EXPECT_THAT(failure_of(changed, ErrorCode::mismatch), HasSubstr("uint64 of shape 12 x 500, and is asked for as"));
  changed = want;
  std::get<Shard>(changed.from).global_shape = Shape({13, 500});
  EXPECT_THAT(failure_of(changed, ErrorCode::mismatch),
              HasSubstr("a block of a global array, uint64 of shape 13 x 500"));
  changed = want;
  std::get<Shard>(changed.from).offset = Shape({9, 3});
  EXPECT_THAT(failure_of(changed, ErrorCode::mismatch), HasSubstr("reaches over the edge"));
  changed = want;
  changed.name = "array2";
  EXPECT_THAT(failure_of(changed, ErrorCode::not_found), HasSubstr("no rank saved a region 'array2'"));
  changed.name = "own";
  EXPECT_THAT(failure_of(changed, ErrorCode::mismatch), HasSubstr("saved as a region of one rank alone, uint64 of"));
  changed.name = "same";
  EXPECT_THAT(failure_of(changed, ErrorCode::mismatch), HasSubstr("saved as replicated, uint64 of shape 5"));
  changed = {"array1", DataType::uint64, {}, Shape({12, 500}), Replicated{}, {}};
  EXPECT_THAT(failure_of(changed, ErrorCode::mismatch), HasSubstr("saved as a block of a global array"));
  changed.from = OnlyOne{};
  EXPECT_THAT(failure_of(changed, ErrorCode::mismatch), HasSubstr("saved as a block of a global array"));
  changed = {"own", DataType::uint64, {}, Shape{5}, LogicalRank{2}, {}};
  EXPECT_THAT(failure_of(changed, ErrorCode::not_found), HasSubstr("rank 2 saved no region 'own'"));
  changed.from = LogicalRank{77};
  EXPECT_THAT(failure_of(changed, ErrorCode::not_found), HasSubstr("rank 77 saved no region 'own'"));
}

TEST(Loads, R46_OwnRegionsOfSeveralRanksAreNotTheOnlyOne) {
  Job job;
  job.logical_ranks = 5;
  job.wants.resize(2);
  for (const std::uint32_t rank : {1U, 2U, 4U}) job.add(saved_region("r", 1, Shape{5}, box_of(Shape{5}), {}, rank));
  job.wants[1].emplace_back(Want{"r", DataType::uint64, {}, Shape{5}, OnlyOne{}, {}}, 1);
  job.run();
  EXPECT_EQ(job.code, ErrorCode::mismatch);
  EXPECT_THAT(job.failure, HasSubstr("region 'r' was saved by ranks 1 and 2"));
}

TEST(Loads, R46_AHoleNamesItsFirstElement) {
  Job job;
  rows(job);
  job.saved.erase(job.saved.begin() + 2);  // rows 6 to 8
  job.steward_of.erase(job.steward_of.begin() + 2);
  job.run();
  EXPECT_EQ(job.code, ErrorCode::mismatch);
  EXPECT_THAT(job.failure, HasSubstr("global array 'array1' (12 x 500): no rank saved element (6, 0)"));
}

TEST(Loads, R46_AHoleThatIsAllOfATile) {
  Job job;
  job.logical_ranks = 200;
  job.wants.resize(3);
  const Shape shape({200, 5});
  job.add_array(1, shape, cut_evenly(box_of(shape), 100, 0));
  std::erase_if(job.saved, [](const SavedRegion& region) { return region.offer.logical_rank >= 50; });
  job.wants[1].emplace_back(block_of("array1", shape, box_at(Shape({150, 1}), Shape({2, 2}))), 1);
  job.run();
  EXPECT_EQ(job.code, ErrorCode::mismatch);
  EXPECT_THAT(job.failure, HasSubstr("no rank saved element (150, 1)"));
}

TEST(Loads, R31_R46_DamageEndsTheLoadOnAllRanksWithZerosInstead) {
  for (const bool mapped : {false, true}) {
    Job job;
    rows(job);
    for (SavedRegion& region : job.saved) region.offer.is_mapped = mapped;
    job.before_read = [](int, const BlockToRead& block) {
      if (block.region.logical_rank == 1) {
        throw Error(ErrorCode::corrupt, compose("region '{}' of rank 1 is damaged", block.region.name));
      }
    };
    job.run();
    EXPECT_EQ(job.code, ErrorCode::corrupt);
    EXPECT_EQ(job.failure, "region 'array1' of rank 1 is damaged");
    std::uint64_t zeros = 0;
    for (const auto& wants : job.wants) {
      for (const std::uint64_t element : wants[0].elements()) zeros += element == 0 ? 1U : 0U;
    }
    EXPECT_GT(zeros, 0U);
  }
}

/// On each process.
TEST(Loads, R46_WhatACallThrowsEndsTheLoadOnAllRanks) {
  for (const int failing : {0, 1, 2}) {
    Job job;
    rows(job);
    for (SavedRegion& region : job.saved) region.offer.is_mapped = true;
    job.before_read = [&](int process, const BlockToRead&) {
      if (process == failing) throw std::bad_alloc();
    };
    job.run();
    EXPECT_EQ(job.code, ErrorCode::no_space);
  }
}

/// A communicator that changes what arrives in large messages: in rounds, not in the plan.
class Damaging final : public testing::ForwardingCommunicator {
 public:
  Damaging(Communicator& inner, std::function<void(std::vector<std::byte>&)> damage)
      : ForwardingCommunicator(inner), damage_(std::move(damage)) {}
  std::vector<Message> sparse_exchange(std::vector<Message> messages, Deadline deadline) override {
    auto arrived = ForwardingCommunicator::sparse_exchange(std::move(messages), deadline);
    for (Message& message : arrived) {
      if (message.bytes.size() > 1000) damage_(message.bytes);
    }
    return arrived;
  }

 private:
  std::function<void(std::vector<std::byte>&)> damage_;
};

TEST(Loads, R31_R46_AMessageThatWasDamagedOnItsWayIsNoticed) {
  const std::vector<std::function<void(std::vector<std::byte>&)>> damages = {
      [](std::vector<std::byte>& bytes) { bytes[500] ^= std::byte{1}; },
      [](std::vector<std::byte>& bytes) { bytes.pop_back(); },
      [](std::vector<std::byte>& bytes) { bytes.resize(2); },
  };
  for (const auto& damage : damages) {
    Job job;
    rows(job);
    for (SavedRegion& region : job.saved) region.offer.is_mapped = true;
    job.within = [&](Communicator& communicator, const auto& body) {
      if (communicator.rank() != 1) return body(communicator);
      Damaging damaging(communicator, damage);
      body(damaging);
    };
    job.run();
    EXPECT_EQ(job.code, ErrorCode::io);
    EXPECT_THAT(job.failure, HasSubstr("was damaged on its way"));
  }
}

TEST(Loads, R46_ALostMessageIsNoticed) {
  Job job;
  rows(job);
  for (SavedRegion& region : job.saved) region.offer.is_mapped = true;
  job.within = [&](Communicator& communicator, const auto& body) {
    Damaging damaging(communicator, [](std::vector<std::byte>& bytes) {
      const std::uint32_t crc = crc32c({});
      bytes.resize(sizeof crc);  // one without any bytes
      std::memcpy(bytes.data(), &crc, sizeof crc);
    });
    body(damaging);
  };
  job.run();
  EXPECT_EQ(job.code, ErrorCode::io);
  EXPECT_THAT(job.failure, HasSubstr("region 'array1' arrived in part"));
}

/// A rank that dies at any of its events.
TEST(Loads, R46_ARankThatDiesLeavesTheOthersWithAnError) {
  for (std::uint64_t event = 0; event < 400; ++event) {
    Job job;
    rows(job);
    testing::InProcessWorld world(3);
    world.stop_at(1, event, testing::StopKind::die);
    job.counts.resize(3);
    const auto outcomes = world.run_connected([&](Communicator& communicator) { job.run_process(communicator); });
    if (!outcomes[1].died) {
      EXPECT_GT(event, 40U);
      return;
    }
    for (const std::size_t other : {0U, 2U}) {
      if (outcomes[other].failure) {
        EXPECT_EQ(outcomes[other].failure->code, ErrorCode::timeout);
      } else {
        EXPECT_TRUE(outcomes[other].returned());
      }
    }
  }
  ADD_FAILURE() << "it takes more events than that";
}

}  // namespace
}  // namespace kedge::arrays::load_all_test
