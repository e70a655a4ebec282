// The communicator over MPI: every check of a communicator, on sub-communicators and in small pieces too; each
// collective call that waits for a rank in another call times out and names it; threads of a rank wake and interrupt
// each other.
#include <gmock/gmock.h>
#include <mpi.h>

#include <chrono>
#include <numeric>
#include <thread>

#include "comm/mpi/mpi_call.hpp"
#include "comm/mpi/mpi_communicator.hpp"
#include "harness/communicator_contract.hpp"
#include "harness/topology_checks.hpp"
#include "kedge/error.hpp"
#include "kedge/mpi.hpp"

namespace kedge::comm::communicator_test {
namespace {

using std::chrono::milliseconds;

Deadline soon() { return Deadline::after(std::chrono::seconds(20)); }

std::unique_ptr<Communicator> connected(MPI_Comm comm) {
  auto communicator = mpi(comm);
  communicator->connect(soon());
  return communicator;
}

template <class Call>
Failure failure_of(Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.failure();
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

class MpiContract : public testing::TestWithParam<contract::Case> {};

TEST_P(MpiContract, BlockedCalls) { GetParam().check(*connected(MPI_COMM_WORLD)); }

TEST_P(MpiContract, HoldsWhenEverythingIsSplitIntoSmallPieces) {
  MpiCommunicator communicator(MPI_COMM_WORLD, {.piece_bytes = 500});  // divides 1000 and 1500: whole pieces
  communicator.connect(soon());
  GetParam().check(communicator);
}

TEST_P(MpiContract, HoldsOnASubCommunicator) {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm half = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);
  const auto communicator = connected(half);
  MPI_Comm_free(&half);  // needed until connect only
  GetParam().check(*communicator);
}

INSTANTIATE_TEST_SUITE_P(All, MpiContract, testing::ValuesIn(contract::cases().begin(), contract::cases().end()),
                         [](const auto& test) { return test.param.name; });

TEST(Mpi, FindsWhereItsRanksAre) {
  const auto communicator = connected(MPI_COMM_WORLD);
  const auto ranks = static_cast<std::size_t>(communicator->size());
  contract::Layout layout{std::vector<int>(ranks), std::vector<int>(ranks)};
  contract::check_topology(*communicator, layout);  // all on one node
  for (std::size_t rank = 0; rank < ranks; ++rank) layout.node[rank] = layout.domain[rank] = static_cast<int>(rank);
  contract::check_topology(*communicator, layout);
  for (std::size_t rank = 0; rank < ranks; ++rank) layout.domain[rank] = rank == 2 ? 1 : static_cast<int>(rank % 2) * 2;
  contract::check_topology(*communicator, layout);
}

TEST(Mpi, RefusesWhatIsNoCommunicator) {
  EXPECT_EQ(failure_of([] { static_cast<void>(mpi(MPI_COMM_NULL)); }).code, ErrorCode::invalid_argument);
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (size == 1) return;
  MPI_Comm half = MPI_COMM_NULL;
  MPI_Comm inter = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank % 2, 0, &inter);
  EXPECT_EQ(failure_of([&] { static_cast<void>(mpi(inter)); }).code, ErrorCode::invalid_argument);
  MPI_Comm_free(&inter);
  MPI_Comm_free(&half);
}

TEST(Mpi, MustBeConnectedOnce) {
  const auto communicator = mpi(MPI_COMM_WORLD);
  EXPECT_EQ(failure_of([&] { communicator->barrier(soon()); }).code, ErrorCode::bad_state);
  communicator->connect(soon());
  EXPECT_EQ(failure_of([&] { communicator->connect(soon()); }).code, ErrorCode::bad_state);
  communicator->barrier(soon());
}

TEST(Mpi, TakesGivenNamesAndNotThoseOfTheLibrary) {
  MPI_Comm copy = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  EXPECT_EQ(mpi(copy)->name(), "");
  MPI_Comm_set_name(copy, "ocean");
  EXPECT_EQ(mpi(copy)->name(), "ocean");
  MPI_Comm_free(&copy);
}

TEST(Mpi, KnowsTheThreadSupport) {
  int provided = 0;
  MPI_Query_thread(&provided);
  const auto support = mpi(MPI_COMM_WORLD)->thread_support();
  EXPECT_EQ(support == ThreadSupport::multiple, provided == MPI_THREAD_MULTIPLE);
  EXPECT_EQ(support == ThreadSupport::single, provided == MPI_THREAD_SINGLE);
}

TEST(Mpi, AnErrorOfMpiIsThrownWithItsText) {
  const auto local = failure_of([] { check_local_mpi(MPI_ERR_COUNT, "MPI_Comm_rank"); });
  const auto failure = failure_of([] { check_mpi(MPI_ERR_COUNT, "MPI_Isend"); });
  EXPECT_EQ(local.code, ErrorCode::io);
  EXPECT_EQ(failure.code, ErrorCode::rank_failed);
  EXPECT_NE(local.message.find("MPI_Comm_rank failed with code"), std::string::npos) << local.message;
  EXPECT_NE(failure.message.find("count"), std::string::npos) << failure.message;  // MPI's own words
  EXPECT_THAT(mpi(MPI_COMM_WORLD)->library(),
              testing::ContainsRegex("^(Open MPI|MPICH)[^,]* v?[0-9]+[.][0-9]+[.][0-9]+$"));
}

TEST(Mpi, AWaitForNobodyTimesOutAndNamesThePeer) {
  const auto communicator = connected(MPI_COMM_WORLD);
  const int peer = communicator->size() - 1;
  std::vector<std::byte> never(1);
  auto request = communicator->receive(peer, 3, never);
  const auto failure =
      failure_of([&] { communicator->wait(std::span(&request, 1), Deadline::after(milliseconds(50))); });
  EXPECT_EQ(failure.code, ErrorCode::timeout);
  EXPECT_NE(failure.message.find("for rank " + std::to_string(peer)), std::string::npos) << failure.message;
  EXPECT_EQ(failure_of([&] { communicator->barrier(soon()); }).code, ErrorCode::bad_state);
  static_cast<void>(std::make_unique<std::vector<std::byte>>(std::move(never)).release());  // as the contract asks
}

/// The last rank comes late to a collective call that the others time out waiting for.
template <class Call>
void last_rank_comes_late(Call&& call) {
  auto communicator = connected(MPI_COMM_WORLD);
  if (communicator->size() == 1) return;
  const bool late = communicator->rank() == communicator->size() - 1;
  if (late) {
    std::this_thread::sleep_for(milliseconds(600));
    try {  // it may get through or not, but must come back
      call(*communicator, Deadline::after(milliseconds(300)));
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::timeout);
    }
  } else {
    const auto begin = std::chrono::steady_clock::now();
    const auto failure = failure_of([&] { call(*communicator, Deadline::after(milliseconds(100))); });
    EXPECT_EQ(failure.code, ErrorCode::timeout);
    EXPECT_NE(failure.message.find("rank"), std::string::npos);
    EXPECT_GE(std::chrono::steady_clock::now() - begin, milliseconds(100));
    EXPECT_EQ(failure_of([&] { communicator->barrier(soon()); }).code, ErrorCode::bad_state);
  }
  communicator.reset();                        // never communicates, so it cannot hang
  connected(MPI_COMM_WORLD)->barrier(soon());  // and MPI goes on working for others
}

TEST(MpiTimeout, OfAnAllReduce) {
  last_rank_comes_late([](Communicator& communicator, Deadline deadline) {
    std::vector<std::uint64_t> values(1000, 1);
    communicator.all_reduce(values, Reduction::sum, deadline);
  });
}

TEST(MpiTimeout, OfABroadcast) {
  last_rank_comes_late([](Communicator& communicator, Deadline deadline) {
    std::vector<std::byte> bytes(1000000);
    communicator.broadcast(bytes, communicator.size() - 1, deadline);
  });
}

TEST(MpiTimeout, OfABarrier) {
  last_rank_comes_late([](Communicator& communicator, Deadline deadline) { communicator.barrier(deadline); });
}

TEST(MpiTimeout, OfASparseExchange) {
  last_rank_comes_late([](Communicator& communicator, Deadline deadline) {
    std::vector<Communicator::Message> messages;
    messages.push_back({communicator.size() - 1, std::vector<std::byte>(100000)});
    static_cast<void>(communicator.sparse_exchange(std::move(messages), deadline));
  });
}

TEST(MpiTimeout, OfAGroup) {
  last_rank_comes_late([](Communicator& communicator, Deadline deadline) {
    std::vector<int> group(static_cast<std::size_t>(communicator.size()));
    std::iota(group.rbegin(), group.rend(), 0);  // the late one is the root of the tree
    std::vector<std::uint64_t> values(100, 1);
    communicator.all_reduce(values, Reduction::sum, deadline, group);
  });
}

TEST(MpiTimeout, OfConnect) {
  MPI_Comm copy = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  const auto communicator = mpi(copy);
  if (communicator->size() > 1) {
    if (communicator->rank() == 0) {
      std::this_thread::sleep_for(milliseconds(600));
      communicator->connect(soon());
    } else {
      EXPECT_EQ(failure_of([&] { communicator->connect(Deadline::after(milliseconds(100))); }).code,
                ErrorCode::timeout);
    }
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

}  // namespace
}  // namespace kedge::comm::communicator_test
