// A start of a run by itself: which number it takes, also of several at the same time, who is the newest, and that
// a start that withdraws leaves nothing.
#include "persist/run_start.hpp"

#include <gmock/gmock.h>

#include <barrier>
#include <functional>
#include <set>
#include <thread>

#include "persist/prefix_markers.hpp"
#include "persist/unfinished_tags.hpp"
#include "unit/persist/records_fixture.hpp"

namespace kedge::faults::run_start_test {
namespace {

using persist::PrefixMarkers;
using persist::RunStart;
using persist::UnfinishedTags;
using persist::testing::id_of;
using ::testing::IsEmpty;

const Id128 kRun = id_of(3);

using RunStartTest = persist::testing::RecordsTest;

TEST_F(RunStartTest, StartsAtTheSameTimeNeverTakeTheSameNumber) {
  constexpr int kStarts = 4;
  constexpr int kRounds = 40;
  (void)next_start();
  std::barrier all(kStarts);
  std::vector<std::vector<std::uint64_t>> taken(kStarts);
  std::vector<std::thread> threads;
  threads.reserve(kStarts);
  for (int start = 0; start < kStarts; ++start) {
    threads.emplace_back([&, start] {
      RunStart mine({disk.view(start), "/d/prefix", "heat"});
      for (int round = 0; round < kRounds; ++round) {
        all.arrive_and_wait();
        taken[static_cast<std::size_t>(start)].push_back(mine.take_incarnation());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::set<std::uint64_t> different;
  for (const auto& numbers : taken) different.insert(numbers.begin(), numbers.end());
  EXPECT_EQ(different.size(), std::size_t{kStarts} * kRounds);
}

TEST_F(RunStartTest, TheNextNumberIsGreaterThanAllWhateverIsMissingBelow) {
  (void)next_start();
  plant("incarnation-5000");
  EXPECT_EQ(next_start().take_incarnation(), 5001U);
}

/// After the greatest there is none; and commits of a start beyond the range would be refused when they are read.
TEST_F(RunStartTest, NumbersThatNoStartCanHaveHadAreIgnored) {
  RunStart mine = start();
  plant("incarnation-18446744073709551615");
  plant("incarnation-2305843009213693952");
  plant("incarnation-2305843009213");
  plant("begun-18446744073709551615");
  plant("begun-2305843009213693952");
  mine.mark_begun({});
  EXPECT_TRUE(mine.is_newest());
  EXPECT_EQ(next_start().take_incarnation(), 2U);
}

/// Such as a removal leaves that was killed, or a loss of files.
TEST_F(RunStartTest, AStartIsNewerThanAllThatBegunWhateverNumbersAreLost) {
  (void)next_start();
  plant("begun-7");
  RunStart mine = start();
  mine.mark_begun({});
  EXPECT_TRUE(mine.is_newest());
  EXPECT_TRUE(has("begun-8"));
}

TEST_F(RunStartTest, WhoOnlyTookANumberSupersedesNobodyAndWhoHasBegunAllBefore) {
  RunStart older = begun();
  RunStart newer = start();
  newer.write_nonce(id_of(3));
  plant("begun-9x");
  plant("incarnation-9x");
  EXPECT_TRUE(older.is_newest());
  newer.mark_begun({});
  EXPECT_FALSE(older.is_newest());
  PrefixMarkers(newer).mark_first_commit(kRun, id_of(1));
  const std::vector<std::function<void()>> refused = {
      [&] { PrefixMarkers(older).mark_first_commit(kRun, id_of(2)); },
      [&] { older.mark_begun({}); },
      [&] { older.require_newest(); },
      [&] { PrefixMarkers(older).remove_first_commit(); },
      [&] { UnfinishedTags(older).mark("a.1-00000000"); },
      [&] { (void)UnfinishedTags(older).list(); },
  };
  for (const auto& step : refused) EXPECT_EQ(code_of(step), ErrorCode::busy);
  EXPECT_TRUE(PrefixMarkers(newer).has_first_commit({}));
  EXPECT_THAT(UnfinishedTags(newer).list(), IsEmpty());
  EXPECT_EQ(next_start().take_incarnation(), 3U);
}

TEST_F(RunStartTest, WhoWithdrawsLeavesNothingAndTakesNothingFromWhoCameAfter) {
  RunStart older = begun();
  RunStart newer = begun();
  newer.write_nonce(id_of(3));
  newer.withdraw();
  EXPECT_TRUE(older.is_newest());
  EXPECT_FALSE(has("nonce-2") || has("begun-2") || has("incarnation-2"));
  RunStart next = begun();
  EXPECT_TRUE(has("incarnation-2"));
  newer.withdraw();
  EXPECT_TRUE(has("incarnation-2") && has("begun-2")) << "they are another start's now";
  EXPECT_FALSE(older.is_newest());
}

TEST_F(RunStartTest, NoncesOfStartsBeforeAreRemovedAndThoseOfLaterOnesStay) {
  RunStart older = start();
  plant("nonce-1", "left by a start that came to nothing");
  older.write_nonce(id_of(1));
  EXPECT_EQ(disk.read_all(path_of("nonce-1")).size(), 33U);
  RunStart newer = start();
  newer.write_nonce(id_of(2));
  older.remove_nonces();
  EXPECT_FALSE(has("nonce-1"));
  EXPECT_TRUE(has("nonce-2"));
  older.write_nonce(id_of(1));
  newer.remove_nonces();
  EXPECT_FALSE(has("nonce-1") || has("nonce-2"));
}

/// Where records were removed and made again, numbers begin at 1.
TEST_F(RunStartTest, AStartWhoseRecordsWereRemovedIsSuperseded) {
  RunStart mine = start();
  mine.mark_begun({id_of(3)});
  EXPECT_TRUE(mine.is_newest());
  disk.remove_all(path_of("begun-1"));
  EXPECT_FALSE(mine.is_newest());
  plant("begun-1", "another's");
  EXPECT_EQ(code_of([&] { mine.require_newest(); }), ErrorCode::busy);
}

}  // namespace
}  // namespace kedge::faults::run_start_test
