// A commit whose elements are their global indices, and a job of another number of processes that loads it, as threads.
#pragma once

#include <functional>
#include <mutex>

#include "base/text.hpp"
#include "harness/saved_arrays.hpp"
#include "harness/testing_world.hpp"

namespace kedge::arrays::load_all_test {

using format::kBlockBytes;

inline constexpr std::uint64_t kMiB = std::uint64_t{1} << 20U;

/// A commit, and the job that loads it.
struct Job {
  std::uint32_t logical_ranks = 1;
  std::vector<SavedRegion> saved;
  std::vector<int> steward_of;                     ///< by region
  std::vector<std::vector<WantedMemory>> wants{};  ///< by process
  std::uint64_t buffer_bytes = 16 * kMiB;
  std::uint64_t rows_per_batch = kRowsPerBatch;
  bool has_memory = true;  ///< that blocks may be read into
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
    LoadInput input{mine, offers, logical_ranks, buffer_bytes, rows_per_batch, {}, {}, {}};
    input.read = [&](const BlockToRead& block, std::span<std::byte> to) {
      before_read(group.rank(), block);
      read_block(block, to, group.rank());
    };
    input.memory = [&](std::uint32_t want) { return has_memory ? wants[me][want].data() : nullptr; };
    input.deliver = [&](const Delivery& delivery) { copy_to_memory(delivery, wants[me][delivery.want].data()); };
    counts[me] = load_all(group, input);
  }

  void read_block(const BlockToRead& block, std::span<std::byte> to, int process) {
    for (std::size_t i = 0; i < saved.size(); ++i) {
      const SavedRegion& region = saved[i];
      if (region.offer.name != block.region.name || region.offer.logical_rank != block.region.logical_rank) continue;
      const std::lock_guard lock(mutex);
      read.insert({i, block.offset / kBlockBytes});
      EXPECT_EQ(block.offset % kBlockBytes, 0U);
      EXPECT_EQ(block.size_bytes, region.block_bytes(block.offset / kBlockBytes));
      EXPECT_EQ(block.region.size_bytes, region.bytes.size());
      EXPECT_TRUE(process == steward_of[i] || !region.offer.is_in_store);
      ASSERT_EQ(to.size(), block.size_bytes);
      std::ranges::copy(std::span(region.bytes).subspan(block.offset, block.size_bytes), to.begin());
      return;
    }
    ADD_FAILURE() << "no such region: " << block.region.name << " of " << block.region.logical_rank;
  }

  void add_array(std::uint64_t array, const Shape& shape, const std::vector<Box>& blocks) {
    for (std::uint32_t rank = 0; rank < blocks.size(); ++rank) {
      if (blocks[rank].dimensions != shape.dimensions()) continue;  // a scalar is saved by one rank alone
      add(saved_region(compose("array{}", array), array, shape, blocks[rank], Shard{}, rank));
    }
  }
  void put_all_in_stores(bool in_stores) {
    for (SavedRegion& region : saved) region.offer.is_in_store = in_stores;
  }
  void add(SavedRegion region) {
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

}  // namespace kedge::arrays::load_all_test
