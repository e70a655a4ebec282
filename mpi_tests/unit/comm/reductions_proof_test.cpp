// A communicator that reduces wrongly is refused before anything rests on it.
#include "comm/reductions_check.hpp"

#include <gmock/gmock.h>

#include <functional>
#include <utility>

#include "harness/forwarding_communicator.hpp"
#include "kedge/error.hpp"
#include "kedge/testing/in_process_world.hpp"

namespace kedge::comm::reductions_proof_test {
namespace {

using ::testing::HasSubstr;
using Corruption = std::function<void(std::span<std::uint64_t>, Reduction)>;

/// Reduces as the one before it does, and does harm to the result.
class WrongReductions final : public testing::ForwardingCommunicator {
 public:
  WrongReductions(Communicator& inner, Corruption harm) : ForwardingCommunicator(inner), corruption_(std::move(harm)) {}
  [[nodiscard]] std::string library() const override { return "Some MPI 4.0"; }
  void all_reduce(std::span<std::uint64_t> values, Reduction reduction, Deadline deadline,
                  std::span<const int> group) override {
    ForwardingCommunicator::all_reduce(values, reduction, deadline, group);
    corruption_(values, reduction);
  }

 private:
  Corruption corruption_;
};

/// How each of so many ranks ended, of which the last alone (or all) get results with that harm.
std::vector<testing::RankOutcome> prove(int ranks, bool on_all, const Corruption& harm) {
  testing::InProcessWorld world(ranks);
  return world.run_connected([&](Communicator& communicator) {
    const bool is_harmed = on_all || communicator.rank() == ranks - 1;
    WrongReductions wrong(communicator, is_harmed ? harm : Corruption([](auto, auto) {}));
    require_correct_reductions(wrong, Deadline::after(std::chrono::seconds(5)));
  });
}

TEST(ReductionsProof, ACommunicatorThatReducesRightPasses) {
  for (int ranks = 1; ranks <= 9; ++ranks) {
    for (const auto& outcome : prove(ranks, true, [](auto, auto) {})) EXPECT_TRUE(outcome.returned()) << ranks;
  }
}

TEST(ReductionsProof, OneWrongResultOnOneRankIsRefusedOnAllByTheSameWords) {
  const std::pair<Reduction, std::string> reductions[] = {{Reduction::min, "the minimum of"},
                                                          {Reduction::max, "the maximum of"},
                                                          {Reduction::sum, "the sum of"},
                                                          {Reduction::bit_or, "the bitwise or of"},
                                                          {Reduction::bit_and, "the bitwise and of"}};
  for (const auto& [reduction, words] : reductions) {
    for (const std::size_t which : {0U, 1U, 2U, 3U}) {
      const auto outcomes = prove(3, false, [&, wrong = reduction](std::span<std::uint64_t> values, Reduction now) {
        if (now == wrong) values[which] ^= 1U;
      });
      for (const auto& outcome : outcomes) {
        ASSERT_TRUE(outcome.failure) << words;
        EXPECT_EQ(outcome.failure->code, ErrorCode::invalid_argument);
        EXPECT_THAT(outcome.failure->message, HasSubstr("Some MPI 4.0 gives wrong results"));
        EXPECT_THAT(outcome.failure->message, HasSubstr(words));
        EXPECT_THAT(outcome.failure->message, HasSubstr("rank 2"));
      }
    }
  }
}

/// What MPICH 4.0 does with unsigned integers.
class SignedReductions final : public testing::ForwardingCommunicator {
 public:
  using ForwardingCommunicator::ForwardingCommunicator;
  void all_reduce(std::span<std::uint64_t> values, Reduction reduction, Deadline deadline,
                  std::span<const int> group) override {
    const bool compares = reduction == Reduction::min || reduction == Reduction::max;
    flip(values, compares);  // as the order of signed integers is that of unsigned ones with the highest bit flipped
    ForwardingCommunicator::all_reduce(values, reduction, deadline, group);
    flip(values, compares);
  }

 private:
  static void flip(std::span<std::uint64_t> values, bool compares) {
    for (auto& value : values) value ^= compares ? std::uint64_t{1} << 63U : 0U;
  }
};

TEST(ReductionsProof, UnsignedIntegersComparedAsSignedAreRefused) {
  for (const int ranks : {2, 3, 8}) {
    testing::InProcessWorld world(ranks);
    const auto outcomes = world.run_connected([&](Communicator& communicator) {
      SignedReductions wrong(communicator);
      require_correct_reductions(wrong, Deadline::after(std::chrono::seconds(5)));
    });
    for (const auto& outcome : outcomes) {
      ASSERT_TRUE(outcome.failure) << ranks;
      EXPECT_THAT(outcome.failure->message, HasSubstr("the minimum of 64-bit unsigned integers is wrong on rank 0"));
    }
  }
}

}  // namespace
}  // namespace kedge::comm::reductions_proof_test
