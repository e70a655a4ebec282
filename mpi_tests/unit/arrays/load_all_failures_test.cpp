// Loads on another number of ranks that fail: all ranks get one error, which names what is wrong, whichever of them had
// it: wants that cannot be served, damage, functions that throw, messages that are lost, and a rank that dies.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "arrays/rounds.hpp"
#include "harness/forwarding_communicator.hpp"
#include "unit/arrays/load_all_job.hpp"

namespace kedge::arrays::load_all_failures_test {
namespace {

using load_all_test::Job;
using testing::HasSubstr;

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

TEST(FailedLoads, AWantThatCannotBeServedFailsOnAllRanksAlike) {
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

TEST(FailedLoads, OwnRegionsOfSeveralRanksAreNotTheOnlyOne) {
  Job job;
  job.logical_ranks = 5;
  job.wants.resize(2);
  for (const std::uint32_t rank : {1U, 2U, 4U}) job.add(saved_region("r", 1, Shape{5}, box_of(Shape{5}), {}, rank));
  job.wants[1].emplace_back(Want{"r", DataType::uint64, {}, Shape{5}, OnlyOne{}, {}}, 1);
  job.run();
  EXPECT_EQ(job.code, ErrorCode::mismatch);
  EXPECT_THAT(job.failure, HasSubstr("region 'r' was saved by ranks 1 and 2"));
}

TEST(FailedLoads, AHoleNamesItsFirstElement) {
  Job job;
  rows(job);
  job.saved.erase(job.saved.begin() + 2);  // rows 6 to 8
  job.steward_of.erase(job.steward_of.begin() + 2);
  job.run();
  EXPECT_EQ(job.code, ErrorCode::mismatch);
  EXPECT_THAT(job.failure, HasSubstr("global array 'array1' (12 x 500): no rank saved element (6, 0)"));
}

TEST(FailedLoads, AHoleThatIsAllOfATile) {
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

TEST(FailedLoads, DamageEndsTheLoadOnAllRanksWithZerosInstead) {
  for (const bool in_stores : {false, true}) {
    Job job;
    rows(job);
    job.put_all_in_stores(in_stores);
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
TEST(FailedLoads, WhatACallThrowsEndsTheLoadOnAllRanks) {
  for (const int failing : {0, 1, 2}) {
    Job job;
    rows(job);
    job.put_all_in_stores(true);
    job.before_read = [&](int process, const BlockToRead&) {
      if (process == failing) throw std::bad_alloc();
    };
    job.run();
    EXPECT_EQ(job.code, ErrorCode::no_space);
  }
}

/// A communicator that changes what arrives in exchanges.
class Damaging final : public testing::ForwardingCommunicator {
 public:
  using Damage = std::function<void(std::vector<Message>&)>;
  Damaging(Communicator& inner, Damage damage) : ForwardingCommunicator(inner), damage_(std::move(damage)) {}
  std::vector<Message> sparse_exchange(std::vector<Message> messages, Deadline deadline) override {
    auto arrived = ForwardingCommunicator::sparse_exchange(std::move(messages), deadline);
    damage_(arrived);
    return arrived;
  }

 private:
  Damage damage_;
};

/// Large messages: those of rounds, not of the plan.
Damaging::Damage damage_large(const std::function<void(std::vector<std::byte>&)>& damage) {
  return [damage](std::vector<Communicator::Message>& messages) {
    for (Communicator::Message& message : messages) {
      if (message.bytes.size() > 1000) damage(message.bytes);
    }
  };
}

TEST(FailedLoads, AMessageThatWasDamagedOnItsWayIsNoticed) {
  const std::vector<std::function<void(std::vector<std::byte>&)>> damages = {
      [](std::vector<std::byte>& bytes) { bytes[500] ^= std::byte{1}; },
      [](std::vector<std::byte>& bytes) { bytes.pop_back(); },
      [](std::vector<std::byte>& bytes) { bytes.resize(2); },
  };
  for (const auto& damage : damages) {
    Job job;
    rows(job);
    job.put_all_in_stores(true);
    job.within = [&](Communicator& communicator, const auto& body) {
      if (communicator.rank() != 1) return body(communicator);
      Damaging damaging(communicator, damage_large(damage));
      body(damaging);
    };
    job.run();
    EXPECT_EQ(job.code, ErrorCode::io);
    EXPECT_THAT(job.failure, HasSubstr("was damaged on its way"));
  }
}

/// Changes the head of the first chunk, and the checksum with it: a sender that is wrong itself.
void change_head(std::vector<std::byte>& bytes, const std::function<void(ChunkHead&)>& change) {
  ChunkHead head;
  std::memcpy(&head, bytes.data(), sizeof head);
  change(head);
  std::memcpy(bytes.data(), &head, sizeof head);
  const std::uint32_t crc = crc32c(std::span(bytes).first(bytes.size() - sizeof(std::uint32_t)));
  std::memcpy(bytes.data() + bytes.size() - sizeof crc, &crc, sizeof crc);
}

TEST(FailedLoads, BytesThatBelongNowhereAreRefused) {
  for (const auto& change : std::vector<std::function<void(ChunkHead&)>>{
           [](ChunkHead& head) { head.number += 1000; }, [](ChunkHead& head) { head.steward = -1; },
           [](ChunkHead& head) { head.first = ~std::uint64_t{0}; }, [](ChunkHead& head) { head.first += 40'000; },
           [](ChunkHead& head) { head.size_bytes += 40'000; }, [](ChunkHead& head) { head.size_bytes = 1; }}) {
    Job job;
    rows(job);
    job.put_all_in_stores(true);
    job.within = [&](Communicator& communicator, const auto& body) {
      if (communicator.rank() != 1) return body(communicator);
      Damaging damaging(communicator, damage_large([&](auto& bytes) { change_head(bytes, change); }));
      body(damaging);
    };
    job.run();
    EXPECT_EQ(job.code, ErrorCode::io) << job.failure;
    EXPECT_THAT(job.failure, HasSubstr("was damaged on its way"));
  }
}

/// Changes one bit of a message of the plan.
TEST(FailedLoads, DamageInThePlanIsNoticed) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    faults::RandomChoices random(seed);
    Job job;
    rows(job);
    for (SavedRegion& region : job.saved) region.offer.is_in_store = random.one_in(2);
    const std::uint64_t exchange = 1 + seed % 4;
    const std::uint64_t at = random.below(1'000'000);
    const auto bit = static_cast<std::byte>(1U << random.below(8));
    bool damaged = false;
    std::uint64_t exchanges = 0;
    job.within = [&](Communicator& communicator, const auto& body) {
      if (communicator.rank() != 1) return body(communicator);
      Damaging damaging(communicator, [&](std::vector<Communicator::Message>& messages) {
        if (++exchanges != exchange || messages.empty()) return;
        auto& bytes = messages[at % messages.size()].bytes;
        bytes[at % bytes.size()] ^= bit;
        damaged = true;
      });
      body(damaging);
    };
    job.run();
    EXPECT_EQ(job.failure.empty(), !damaged) << "seed " << seed;
    EXPECT_TRUE(!damaged || job.failure.find("was damaged on its way") != std::string::npos) << job.failure;
  }
}

TEST(FailedLoads, ALostMessageIsNoticed) {
  Job job;
  rows(job);
  job.put_all_in_stores(true);
  job.within = [&](Communicator& communicator, const auto& body) {
    Damaging damaging(communicator, damage_large([](auto& bytes) {
                        const std::uint32_t crc = crc32c({});
                        bytes.resize(sizeof crc);  // one without any bytes
                        std::memcpy(bytes.data(), &crc, sizeof crc);
                      }));
    body(damaging);
  };
  job.run();
  EXPECT_EQ(job.code, ErrorCode::io);
  EXPECT_THAT(job.failure, HasSubstr("region 'array1' arrived in part"));
}

/// A rank that dies at any of its events.
TEST(FailedLoads, ARankThatDiesLeavesTheOthersWithAnError) {
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
}  // namespace kedge::arrays::load_all_failures_test
