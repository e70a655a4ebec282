// Loads on another number of ranks over MPI, 64 MiB a rank: nothing hangs, every element is its global index, memory is
// bounded, and damage on one rank ends the load on all.
#include "arrays/load_all.hpp"

#include <gtest/gtest.h>
#include <mpi.h>

#include <array>
#include <cstring>
#include <memory>

#include "format/on_disk.hpp"
#include "kedge/mpi.hpp"

namespace kedge::arrays::mpi_load_all_test {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20U;
constexpr std::uint64_t kBufferBytes = 16 * kMiB;
constexpr std::uint64_t kColumns = 4096;
constexpr std::uint64_t kRowsOfARank = 64 * kMiB / 8 / kColumns;

std::unique_ptr<Communicator> connected() {
  auto communicator = mpi(MPI_COMM_WORLD);
  communicator->connect(Deadline::after(std::chrono::seconds(20)));
  return communicator;
}

/// An array of 64 MiB for each logical rank, which has rows of it; elements are their positions.
class MpiLoads : public testing::TestWithParam<bool> {
 protected:
  void save(std::uint32_t ranks) {
    logical_ranks_ = ranks;
    shape_ = Shape{ranks * kRowsOfARank, kColumns};
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      if (static_cast<int>(rank) % group_.size() != group_.rank()) continue;
      const Shape rows{kRowsOfARank, kColumns};
      offers_.push_back(
          {"u", DataType::uint64, {}, rows, Shard{shape_, Shape{rank * kRowsOfARank, 0}}, rank, GetParam()});
    }
  }
  void read(const BlockToRead& block, std::span<std::byte> to) const {
    if (static_cast<int>(block.region.logical_rank) == damaged_rank_) {
      throw Error(ErrorCode::corrupt, "this region is damaged");
    }
    const std::uint64_t first = block.region.logical_rank * kRowsOfARank * kColumns + block.offset / 8;
    for (std::uint64_t i = 0; i < to.size() / 8; ++i) {
      const std::uint64_t value = first + i;
      std::memcpy(to.data() + i * 8, &value, 8);
    }
  }

  /// Loads this block into memory of its own, with so many more columns on each side.
  void load(const Box& block, std::uint64_t margin = 1) {
    const Shape memory_shape{block.end[0] - block.begin[0], block.end[1] - block.begin[1] + 2 * margin};
    memory_.assign(memory_shape[0] * memory_shape[1], kUntouched);
    const Want want{"u",
                    DataType::uint64,
                    {},
                    shape_of(block),
                    Shard{shape_, offset_of(block)},
                    BoxInArray{memory_shape, {0, margin}}};
    LoadInput input{std::span(&want, 1), offers_, logical_ranks_, kBufferBytes, kRowsPerBatch, {}, {}, {}};
    input.read = [&](const BlockToRead& one, std::span<std::byte> to) { read(one, to); };
    input.memory = [&](std::uint32_t) { return std::as_writable_bytes(std::span(memory_)).data(); };
    input.deliver = [&](const Delivery& delivery) { copy_to_memory(delivery, input.memory(delivery.want)); };
    counts_ = load_all(group_, input);
    EXPECT_LE(counts_.buffer_bytes_max, kBufferBytes + format::kBlockBytes);
    const std::uint64_t width = memory_shape[1];
    std::uint64_t wrong = 0;
    for (std::uint64_t i = 0; i < memory_.size(); ++i) {
      const bool is_margin = i % width < margin || i % width >= width - margin;
      const std::uint64_t position = (block.begin[0] + i / width) * kColumns + block.begin[1] + i % width - margin;
      wrong += memory_[i] == (is_margin ? kUntouched : position) ? 0U : 1U;
    }
    EXPECT_EQ(wrong, 0U);
  }

  [[nodiscard]] Box part(std::size_t side, std::uint64_t number, std::uint64_t parts) const {
    Box box = box_of(shape_);
    box.begin[side] = shape_[side] * number / parts;
    box.end[side] = shape_[side] * (number + 1) / parts;
    return box;
  }
  [[nodiscard]] Box mine(std::size_t side) const {
    return part(side, static_cast<std::uint64_t>(group_.rank()), group_.world_size());
  }
  [[nodiscard]] std::uint64_t blocks_read() const { return group_.sum(counts_.blocks_read); }

  static constexpr std::uint64_t kUntouched = ~std::uint64_t{0};
  std::unique_ptr<Communicator> communicator_ = connected();
  comm::Group group_{*communicator_, std::chrono::seconds(60)};
  std::uint32_t logical_ranks_ = 0;
  Shape shape_;
  std::vector<Offer> offers_;
  std::vector<std::uint64_t> memory_;
  LoadCounts counts_;
  int damaged_rank_ = -1;
};

TEST_P(MpiLoads, RowsOfMoreAndOfFewerRanks) {
  for (const std::uint32_t ranks : {group_.world_size() + 1, group_.world_size() - 1}) {
    offers_.clear();
    save(ranks);
    for (const std::uint64_t margin : {1U, 0U}) {  // and where whole blocks go where they are wanted
      load(mine(0), margin);
      EXPECT_EQ(blocks_read(), ranks * 16U) << "each once";
    }
  }
}

TEST_P(MpiLoads, RowsToColumns) {
  save(group_.world_size() + 1);
  load(mine(1));
  EXPECT_EQ(blocks_read(), logical_ranks_ * 16U) << "each once";
  EXPECT_GT(counts_.rounds, 2U);
}

TEST_P(MpiLoads, AllWantAll) {
  save(2);
  load(box_of(shape_));
  EXPECT_EQ(blocks_read(), 32U) << "each once";
}

TEST_P(MpiLoads, DamageOnOneRankEndsTheLoadOnAll) {
  save(group_.world_size() + 1);
  damaged_rank_ = 1;
  try {
    load(mine(1));
    FAIL() << "the damage went unnoticed";
  } catch (const Error& error) {
    EXPECT_EQ(error.failure().message, "this region is damaged");
  }
  damaged_rank_ = -1;
  load(mine(1));  // and the communicator can be used again
}

INSTANTIATE_TEST_SUITE_P(From, MpiLoads, testing::Bool(),
                         [](const auto& test) { return test.param ? "Stores" : "Prefix"; });

}  // namespace
}  // namespace kedge::arrays::mpi_load_all_test
