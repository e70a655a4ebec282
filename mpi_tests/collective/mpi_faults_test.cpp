// MPI that reduces wrongly is refused by name; a call of MPI that fails, a failed process, or a rank without memory
// ends the call with one error on all ranks, soon, and nothing is unmapped that MPI may still use. The calls of MPI are
// replaced here by ones that go wrong on demand.
#include <gmock/gmock.h>
#include <mpi.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "collective/shared_directory.hpp"
#include "comm/mpi/mpi_communicator.hpp"
#include "harness/throwing_communicator.hpp"
#include "kedge/kedge.hpp"
#include "kedge/mpi.hpp"

namespace {

/// What goes wrong in this process; nothing by default.
struct Faults {
  bool maximum_is_wrong = false;
  int tests_until_failure = -1;  ///< of MPI_Test on a request under way; then each fails
  int failure = MPI_ERR_OTHER;   ///< with this
};

Faults& faults() {
  static Faults now;
  return now;
}

}  // namespace

// The linker takes these for MPI's own, which are still there under their other names.
extern "C" int MPI_Iallreduce(const void* from, void* to, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                              MPI_Request* request) {
  const MPI_Op given = faults().maximum_is_wrong && op == MPI_MAX ? MPI_MIN : op;
  return PMPI_Iallreduce(from, to, count, type, given, comm, request);
}

extern "C" int MPI_Test(MPI_Request* request, int* flag, MPI_Status* status) {
  int& left = faults().tests_until_failure;
  if (left == 0) return faults().failure;  // and the request stays under way
  if (left > 0) --left;
  return PMPI_Test(request, flag, status);
}

namespace kedge::mpi_faults_test {
namespace {

using ::testing::HasSubstr;

int rank_of_world() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

int ranks_of_world() {
  int ranks = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  return ranks;
}

template <class Call>
std::optional<Failure> failure_of(Call&& call) {
  try {
    call();
    return std::nullopt;
  } catch (const Error& error) {
    return error.failure();
  }
}

/// COLLECTIVE. Whether this is true on any rank.
bool any(bool mine) {
  int is_any = mine ? 1 : 0;
  MPI_Allreduce(MPI_IN_PLACE, &is_any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  return is_any != 0;
}

class MpiFaults : public ::testing::Test {
 protected:
  void SetUp() override {
    directory_ = make_shared_directory("/dev/shm");
    ASSERT_FALSE(directory_.empty());
    options_.store.path = directory_ + "/store/{node}";
    options_.persistent.path = directory_ + "/prefix";
    options_.persistent.every = 0;
    ::setenv("KEDGE_TEST_RANKS_PER_NODE", "1", 1);
    options_.comm.timeout_s = 3;
    options_.log.level = LogLevel::error;
  }
  void TearDown() override {
    faults() = {};
    ::unsetenv("KEDGE_TEST_RANKS_PER_NODE");
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank_ == 0 && !directory_.empty()) std::filesystem::remove_all(directory_);
  }

  [[nodiscard]] Engine make_engine() const { return Engine(mpi(MPI_COMM_WORLD), options_); }

  int rank_ = rank_of_world();
  int ranks_ = ranks_of_world();
  std::string directory_;
  Options options_;
};

TEST_F(MpiFaults, AnMpiThatReducesWronglyIsRefusedByName) {
  faults().maximum_is_wrong = true;
  const auto failure = failure_of([&] { (void)make_engine(); });
  faults() = {};
  if (ranks_ == 1) return;  // there the least is the greatest
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->code, ErrorCode::invalid_argument);
  EXPECT_THAT(failure->message, HasSubstr(mpi(MPI_COMM_WORLD)->library()));
  EXPECT_THAT(failure->message, HasSubstr("the maximum of 64-bit unsigned integers is wrong"));
  EXPECT_FALSE(std::filesystem::exists(directory_ + "/store"));
}

TEST_F(MpiFaults, MinimumAndMaximumAreThoseOfUnsignedIntegers) {
  const auto communicator = mpi(MPI_COMM_WORLD);
  communicator->connect(Deadline::after(std::chrono::seconds(20)));
  const std::uint64_t highest = std::uint64_t{1} << 63U;
  for (const Reduction reduction : {Reduction::min, Reduction::max}) {
    std::vector<std::uint64_t> values{rank_ == 0 ? 1 : highest + 1, rank_ == 0 ? ~std::uint64_t{0} : 0,
                                      highest - 1 + static_cast<std::uint64_t>(rank_)};
    communicator->all_reduce(values, reduction, Deadline::after(std::chrono::seconds(20)));
    if (ranks_ == 1) continue;
    const bool least = reduction == Reduction::min;
    EXPECT_EQ(values[0], least ? 1 : highest + 1);
    EXPECT_EQ(values[1], least ? 0 : ~std::uint64_t{0});
    EXPECT_EQ(values[2], highest - 1 + (least ? 0 : static_cast<std::uint64_t>(ranks_ - 1)));
  }
}

/// A commit in which one rank's nth test of a request fails, for more and more tests until a commit succeeds: that rank
/// gets rank_failed, the others that or timeout. The engine then takes no calls, and is destroyed while messages are
/// under way from its mapped files: these must stay mapped, or MPI reads what is gone.
TEST_F(MpiFaults, AfterACallThatFailedTheEngineEndsAndUnmapsNothing) {
  if (ranks_ == 1) return;
  options_.comm.timeout_s = 1.5;  // what one rank costs the others each time, and what a busy machine may hold one up
  std::vector<double> state(1'000'000, rank_);
  bool is_over = false;
  for (int after = 0; !is_over; after = after * 3 / 2 + 1) {
    std::optional<Failure> failure;
    {
      Engine engine = make_engine();
      engine.create("step");
      engine.save("state", region(std::span(state)));
      if (rank_ == 1) faults().tests_until_failure = after;
      failure = failure_of([&] { engine.commit(); });
      faults() = {};
      if (rank_ == 1 && failure) {
        EXPECT_EQ(failure->code, ErrorCode::rank_failed) << to_string(*failure);
        EXPECT_THAT(failure->message, HasSubstr("MPI_Test failed with code"));
      } else if (failure) {
        EXPECT_TRUE(failure->code == ErrorCode::timeout || failure->code == ErrorCode::rank_failed)
            << to_string(*failure);
      }
      if (failure) {
        const auto next = failure_of([&] { engine.create("next"); });
        ASSERT_TRUE(next);
        EXPECT_EQ(next->code, ErrorCode::bad_state);
      }
    }
    is_over = !any(failure.has_value());
    options_.run = "after-" + std::to_string(after);  // a dead engine's store stays this process's
    options_.store.path = directory_ + "/" + options_.run + "/{node}";
  }
}

/// One rank has no memory for a message, at one after the other until none is left: all get the same error, at once,
/// and MPI is as good as before.
TEST_F(MpiFaults, ARankWithoutMemoryEndsTheCallOnAllAlikeAndAtOnce) {
  if (ranks_ == 1) return;
  options_.comm.timeout_s = 30;
  options_.pipeline.mode = PipelineMode::inline_;
  bool is_over = false;
  int call = 1;
  for (; !is_over && !any(HasFailure()); call += 3) {
    options_.run = "at-" + std::to_string(call);  // a dead engine's store stays this process's
    const auto plan = std::make_shared<testing::ThrowingCommunicator::Plan>(testing::ThrowingCommunicator::Plan{call});
    const auto begun = std::chrono::steady_clock::now();
    const auto failure = failure_of([&] {
      std::unique_ptr<Communicator> ranks = mpi(MPI_COMM_WORLD);
      if (rank_ == 1) ranks = std::make_unique<testing::ThrowingCommunicator>(std::move(ranks), plan);
      Engine engine(std::move(ranks), options_);
      engine.create("step");
      engine.save("x", region(std::span(&rank_, 1)));
      engine.commit();
      engine.finalize();
    });
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begun;
    EXPECT_LT(spent.count(), 15) << "call " << call;
    is_over = !any(plan->has_thrown);
    EXPECT_EQ(failure.has_value(), !is_over) << "call " << call;
    if (!failure) continue;
    EXPECT_EQ(failure->code, ErrorCode::rank_failed) << to_string(*failure);
    EXPECT_THAT(failure->message, HasSubstr("rank 1 failed during a call: out of memory"));
  }
  EXPECT_GT(call, 50);
}

/// One rank has all that it wants of a call, and leaves for good, while another still waits in it for a third.
TEST_F(MpiFaults, WhoMakesNoMoreCallsIsHeardInTheNextOneAndNotInTheLast) {
  if (ranks_ < 3) return;
  const auto soon = [] { return Deadline::after(std::chrono::seconds(30)); };
  const auto communicator = mpi(MPI_COMM_WORLD);
  communicator->connect(soon());
  communicator->begin_call();
  std::array<std::byte, 1> one{};
  if (rank_ == 0) {
    std::array requests{communicator->receive(1, 0, one), communicator->receive(2, 0, one)};
    const auto failure = failure_of([&] { communicator->wait(requests, soon()); });
    EXPECT_FALSE(failure) << to_string(*failure);
  } else {
    if (rank_ == 2) std::this_thread::sleep_for(std::chrono::milliseconds(500));
    std::array requests{communicator->send(0, 0, one)};
    communicator->wait(requests, soon());
  }
  if (rank_ == 1) return communicator->depart("rank 1 has gone");
  communicator->begin_call();
  const auto begun = std::chrono::steady_clock::now();
  const auto failure = failure_of([&] { communicator->barrier(soon(), {}); });
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(10));
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->code, ErrorCode::rank_failed);
  EXPECT_EQ(failure->message, "rank 1 has gone");
}

#if defined(MPIX_ERR_PROC_FAILED)
/// Where MPI can say that a process failed. A rank that really dies cannot be tested: Open MPI 4 ends the job, and
/// MPICH's launcher may, or the others time out.
TEST_F(MpiFaults, AFailedProcessIsToldAsSuch) {
  Engine engine = make_engine();
  if (rank_ == 0) faults() = {.tests_until_failure = 0, .failure = MPIX_ERR_PROC_FAILED};
  const auto failure = failure_of([&] { engine.create("step"); });
  faults() = {};
  ASSERT_TRUE(failure || rank_ != 0);
  if (rank_ != 0) return;
  EXPECT_EQ(failure->code, ErrorCode::rank_failed) << to_string(*failure);
  EXPECT_THAT(failure->message, HasSubstr("a rank died: see"));
}
#endif

}  // namespace
}  // namespace kedge::mpi_faults_test
