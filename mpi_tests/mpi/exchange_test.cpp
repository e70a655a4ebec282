// Protects and rebuilds redundancy sets over MPI; every rank knows what all files should hold.
#include <gtest/gtest.h>
#include <mpi.h>

#include <array>
#include <deque>
#include <memory>
#include <numeric>
#include <set>

#include "base/text.hpp"
#include "harness/redundancy_support.hpp"
#include "kedge/mpi.hpp"
#include "redundancy/exchange.hpp"

namespace kedge::redundancy::exchange_test {
namespace {

constexpr std::uint64_t kHeader = 4096;

std::unique_ptr<Communicator> connected() {
  auto communicator = mpi(MPI_COMM_WORLD);
  communicator->connect(Deadline::after(std::chrono::seconds(20)));
  return communicator;
}

/// One member's two files, with garbage where it lost them.
struct MyFiles {
  MemoryFile container;
  MemoryFile parity;

  MyFiles(const SetFiles& expected, std::uint32_t me, bool lost_container, bool lost_parity)
      : container(lost_container ? Bytes(expected.container[me].size(), std::byte{0x33}) : expected.container[me]),
        parity(with_header(lost_parity ? Bytes(expected.parity[me].size(), std::byte{0x44}) : expected.parity[me])) {}

  static Bytes with_header(const Bytes& part) {
    Bytes whole(kHeader, std::byte{0x99});
    whole.insert(whole.end(), part.begin(), part.end());
    return whole;
  }
};

struct Case {
  Scheme scheme;
  std::uint32_t parities;
  bool mapped;
};

class MpiExchange : public testing::TestWithParam<Case> {
 protected:
  void run(const SetFiles& expected, const std::vector<Stripe>& stripes, Route route, MyFiles&& files) {
    const auto all_of = [&](const MemoryFile& file) {
      return GetParam().mapped ? std::span(file.bytes()) : std::span<const std::byte>{};
    };
    const std::array local{LocalMember{
        me, {&files.container, all_of(files.container), 0}, {&files.parity, all_of(files.parity), kHeader}}};
    const auto result = exchange_stripes({*communicator, std::chrono::seconds(20)}, ranks, local, stripes, {route, {}});
    EXPECT_FALSE(result.failure.has_value()) << result.failure->message;
    EXPECT_TRUE(files.container.bytes() == expected.container[me]);
    EXPECT_TRUE(files.parity.bytes() == MyFiles::with_header(expected.parity[me]));
    for (std::size_t number = 0; number < stripes.size(); ++number) {
      const Stripe& stripe = stripes[number];
      if (stripe.target != me) continue;
      const auto& file = stripe.part == MemberPart::container ? expected.container : expected.parity;
      const auto bytes = std::span(file[me]).subspan(stripe.offset, stripe.length);
      EXPECT_EQ(result.member_checksums.front().written[number], crc32c(bytes));
    }
  }

  void protect_and_lose_members(const std::vector<int>& members) {
    ranks = members;
    me = static_cast<std::uint32_t>(std::ranges::find(ranks, communicator->rank()) - ranks.begin());
    SetShape set{GetParam().scheme, {}, GetParam().parities};
    if (ranks.size() <= set.parity_count) GTEST_SKIP() << "a set of " << ranks.size() << " is too small";
    for (std::size_t member = 0; member < ranks.size(); ++member) set.sizes.push_back(600'000 + member * 345'678);
    const SetFiles expected = encoded(set);
    for (const Route route : {Route::direct, Route::chain}) {
      run(expected, encode_stripes(set), route, MyFiles(expected, me, false, true));
    }
    const std::size_t stride = std::max<std::size_t>(1, ranks.size() / 3);  // each in turn is for one process
    for (std::size_t lost = 0; lost < ranks.size(); lost += stride) {
      PresentFiles present{std::vector<bool>(ranks.size(), true), std::vector<bool>(ranks.size(), true)};
      std::set<std::size_t> gone;  // as many as may be lost, side by side
      for (std::uint32_t i = 0; i < set.parity_count; ++i) gone.insert((lost + i) % ranks.size());
      for (const std::size_t member : gone) present.container[member] = present.parity[member] = false;
      const bool is_gone = gone.contains(me);
      for (const Route route : {Route::direct, Route::chain}) {
        run(expected, decode_stripes(set, present), route, MyFiles(expected, me, is_gone, is_gone));
      }
    }
  }

  std::unique_ptr<Communicator> communicator = connected();
  std::vector<int> ranks;  ///< of the set's members, by position
  std::uint32_t me = 0;    ///< this process's position
};

TEST_P(MpiExchange, ProtectsAndRebuildsMembersOfOneSet) {
  std::vector<int> members(static_cast<std::size_t>(communicator->size()));
  std::iota(members.rbegin(), members.rend(), 0);  // positions are not ranks
  protect_and_lose_members(members);
}

TEST_P(MpiExchange, SetsWorkBesideEachOther) {
  if (communicator->size() < 4) GTEST_SKIP() << "one set only";
  std::vector<int> members;
  for (int rank = communicator->rank() % 2; rank < communicator->size(); rank += 2) members.push_back(rank);
  protect_and_lose_members(members);
}

/// On fewer ranks than made the set, some processes have several members. Messages are larger than what MPI buffers.
void rebuild_large_members(bool mapped) {
  constexpr std::uint64_t kMemberBytes = std::uint64_t{24} << 20U;
  const auto communicator = connected();
  const SetShape set{Scheme::xor_, std::vector<std::uint64_t>(5, kMemberBytes)};
  std::vector<int> ranks;
  for (int member = 0; member < 5; ++member) ranks.push_back(member % communicator->size());
  PresentFiles present{std::vector<bool>(5, true), std::vector<bool>(5, true)};
  present.container[1] = present.parity[1] = false;
  const SetFiles expected = encoded(set);
  const auto stripes = decode_stripes(set, present);
  std::deque<MyFiles> files;
  std::vector<LocalMember> local;
  for (std::uint32_t member = 0; member < ranks.size(); ++member) {
    if (ranks[member] != communicator->rank()) continue;
    MyFiles& own = files.emplace_back(expected, member, member == 1, member == 1);
    local.push_back({member, {&own.container, {}, 0}, {&own.parity, {}, kHeader}});
    if (!mapped) continue;
    local.back().container.mapped = own.container.bytes();
    local.back().parity.mapped = own.parity.bytes();
  }
  const auto result = exchange_stripes({*communicator, std::chrono::seconds(60)}, ranks, local, stripes,
                                       {route_for(stripes, ranks), {}});
  EXPECT_FALSE(result.failure.has_value()) << result.failure->message;
  for (std::size_t i = 0; i < local.size(); ++i) {
    EXPECT_TRUE(files[i].container.bytes() == expected.container[local[i].position]) << local[i].position;
    EXPECT_TRUE(files[i].parity.bytes() == MyFiles::with_header(expected.parity[local[i].position]));
  }
}

TEST(MpiExchangeOnFewerRanks, LargeMembersAreRebuiltFromMappedFiles) { rebuild_large_members(true); }
TEST(MpiExchangeOnFewerRanks, LargeMembersAreRebuiltFromFilesThatAreRead) { rebuild_large_members(false); }

INSTANTIATE_TEST_SUITE_P(All, MpiExchange,
                         testing::Values(Case{Scheme::partner, 1, true}, Case{Scheme::partner, 1, false},
                                         Case{Scheme::xor_, 1, true}, Case{Scheme::xor_, 1, false},
                                         Case{Scheme::rs, 2, true}, Case{Scheme::rs, 2, false},
                                         Case{Scheme::rs, 3, true}),
                         [](const auto& test) {
                           return compose("{}{}{}", to_string(test.param.scheme), test.param.parities,
                                          test.param.mapped ? "Mapped" : "Read");
                         });

}  // namespace
}  // namespace kedge::redundancy::exchange_test
