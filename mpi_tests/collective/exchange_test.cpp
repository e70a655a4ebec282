// Protects and rebuilds redundancy sets over MPI; every rank knows what all files should hold.
#include <gtest/gtest.h>
#include <mpi.h>

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
    const ExchangeResult result = exchange({*communicator, std::chrono::seconds(20)}, membership, stripes,
                                           {&files.container, all_of(files.container), 0},
                                           {&files.parity, all_of(files.parity), kHeader}, {route, {}});
    EXPECT_FALSE(result.failure.has_value()) << result.failure->message;
    EXPECT_TRUE(files.container.bytes() == expected.container[membership.me]);
    EXPECT_TRUE(files.parity.bytes() == MyFiles::with_header(expected.parity[membership.me]));
    for (std::size_t number = 0; number < stripes.size(); ++number) {
      const Stripe& stripe = stripes[number];
      if (stripe.target != membership.me) continue;
      const auto& file = stripe.part == Part::container ? expected.container : expected.parity;
      const auto bytes = std::span(file[membership.me]).subspan(stripe.offset, stripe.length);
      EXPECT_EQ(result.written[number], crc32c(bytes));
    }
  }

  void protect_and_lose_members(const std::vector<int>& ranks) {
    membership.ranks = ranks;
    membership.me = static_cast<std::uint32_t>(std::ranges::find(ranks, communicator->rank()) - ranks.begin());
    SetShape set{GetParam().scheme, {}, GetParam().parities};
    if (ranks.size() <= set.parities) GTEST_SKIP() << "a set of " << ranks.size() << " is too small";
    for (std::size_t member = 0; member < ranks.size(); ++member) set.sizes.push_back(600'000 + member * 345'678);
    const SetFiles expected = encoded(set);
    for (const Route route : {Route::direct, Route::chain}) {
      run(expected, encode_stripes(set), route, MyFiles(expected, membership.me, false, true));
    }
    const std::size_t stride = std::max<std::size_t>(1, ranks.size() / 3);  // each in turn is for one process
    for (std::size_t lost = 0; lost < ranks.size(); lost += stride) {
      PresentFiles present{std::vector<bool>(ranks.size(), true), std::vector<bool>(ranks.size(), true)};
      std::set<std::size_t> gone;  // as many as may be lost, side by side
      for (std::uint32_t i = 0; i < set.parities; ++i) gone.insert((lost + i) % ranks.size());
      for (const std::size_t member : gone) present.container[member] = present.parity[member] = false;
      const bool me = gone.contains(membership.me);
      for (const Route route : {Route::direct, Route::chain}) {
        run(expected, decode_stripes(set, present), route, MyFiles(expected, membership.me, me, me));
      }
    }
  }

  std::unique_ptr<Communicator> communicator = connected();
  Membership membership;
};

TEST_P(MpiExchange, ProtectsAndRebuildsMembersOfOneSet) {
  std::vector<int> ranks(static_cast<std::size_t>(communicator->size()));
  std::iota(ranks.rbegin(), ranks.rend(), 0);  // positions are not ranks
  protect_and_lose_members(ranks);
}

TEST_P(MpiExchange, SetsWorkBesideEachOther) {
  if (communicator->size() < 4) GTEST_SKIP() << "one set only";
  std::vector<int> ranks;
  for (int rank = communicator->rank() % 2; rank < communicator->size(); rank += 2) ranks.push_back(rank);
  protect_and_lose_members(ranks);
}

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
