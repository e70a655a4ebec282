// Loads on another number of ranks: every element of every want is right and nothing else changes, each touched block
// is read once, and memory is bounded.
#include <gtest/gtest.h>

#include "harness/seeds.hpp"
#include "unit/arrays/load_all_job.hpp"

namespace kedge::arrays::load_all_test {
namespace {

using faults::RandomChoices;

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
TEST(Loads, EachElementIsItsGlobalIndexOnAnyNumberOfProcesses) {
  faults::for_each_seed({150, 3000}, "unit_arrays", [](std::uint64_t seed) {
    RandomChoices random(seed);
    Job job;
    job.logical_ranks = random.one_of({1U, 2U, 5U, 8U, 13U, 150U});
    const int processes = random.one_of({1, 2, 3, 5, 7, 12, 17});
    job.wants.resize(static_cast<std::size_t>(processes));
    job.buffer_bytes = random.one_of({std::uint64_t{10'000}, std::uint64_t{100'000}, 16 * kMiB});
    job.has_memory = random.one_in(2);
    if (random.one_in(2)) job.rows_per_batch = 1 + random.below(20);
    for (std::uint64_t array = 1 + random.below(3); array > 0; --array) {
      const Shape shape = shape_at_random(random);
      job.add_array(array, shape, cut_at_random(box_of(shape), job.logical_ranks, random));
      const bool in_stores = random.one_in(2);
      for (SavedRegion& region : job.saved) region.offer.is_in_store = in_stores && !random.one_in(5);
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
TEST(Loads, LargeRegionsInSmallBuffers) {
  for (const bool in_stores : {true, false}) {
    for (const int processes : {3, 4}) {
      Job job;
      job.logical_ranks = 4;
      job.buffer_bytes = 3 * kMiB;
      job.wants.resize(static_cast<std::size_t>(processes));
      const Shape shape({64, 96, 700});
      job.add_array(1, shape, cut_evenly(box_of(shape), 4, 0));
      job.put_all_in_stores(in_stores);
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

TEST(Loads, VeryManyProcessesAndOne) {
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
TEST(Loads, RegionsThatAreNotBlocks) {
  for (const bool in_stores : {true, false}) {
    Job job;
    job.logical_ranks = 5;
    job.wants.resize(3);
    for (std::uint32_t rank = 0; rank < 5; ++rank) {
      const Shape own{rank + 3};
      job.add(saved_region("random", 10 + rank, own, box_of(own), {}, rank));
      job.add(saved_region("parameters", 20, Shape({2, 7}), box_of(Shape({2, 7})), Replicated{}, rank));
    }
    job.add(saved_region("level2/box17", 30, Shape({4, 4}), box_of(Shape({4, 4})), {}, 3));
    job.put_all_in_stores(in_stores);
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
    EXPECT_EQ(job.read.size(), 5U + (in_stores ? 3 : 1) + 1) << "replicated: its own copy, or one for all";
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

}  // namespace
}  // namespace kedge::arrays::load_all_test
