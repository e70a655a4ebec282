// The records of a run by themselves: who is the newest start, also of several at the same time, what is noted, how a
// lost record is rebuilt, and that it outlives a power loss.
#include "persist/run_records.hpp"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <barrier>
#include <cerrno>
#include <filesystem>
#include <functional>
#include <memory>
#include <set>
#include <thread>

#include "harness/faulty_fixture.hpp"
#include "persist/prefix_runs.hpp"

namespace kedge::faults::run_records_test {
namespace {

using persist::RunRecords;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::uint64_t kSeeds = 12;  // of what a power loss leaves of what is not synced

Id128 id_of(std::uint8_t number) {
  Id128 id;
  id.bytes[0] = number;
  return id;
}

const persist::RunRecord kRecord{id_of(7),
                                 "/d/prefix",
                                 {"/old place", "/older"},
                                 id_of(8),
                                 "caf\xe9.in (4 bytes)",
                                 "/dev/shm/kedge-1000-heat-12345678"};

class RunRecordsTest : public Faulty {
 protected:
  void SetUp() override {
    Faulty::SetUp();
    make_prefix();
  }
  void make_prefix() {
    disk.remove_all("/d/prefix");
    disk.restart();
    disk.make_directories("/d/prefix", 0755);
  }
  [[nodiscard]] RunRecords records() const { return {system, "/d/prefix", "heat"}; }
  /// Another start, which has taken its number.
  [[nodiscard]] RunRecords start() const {
    RunRecords mine = records();
    (void)mine.take_incarnation();
    return mine;
  }
  [[nodiscard]] RunRecords begun() const {
    RunRecords mine = start();
    mine.begin_incarnation({});
    return mine;
  }
  [[nodiscard]] static std::string path_of(const std::string& name) { return "/d/prefix/.kedge/heat/" + name; }
  [[nodiscard]] bool has(const std::string& name) const { return system->status(path_of(name)).has_value(); }
  void plant(const std::string& name, const std::string& text = "x") {
    disk.write_all(path_of(name), std::as_bytes(std::span(text)));
  }
  static std::optional<ErrorCode> code_of(const std::function<void()>& step) {
    const auto failure = failure_of(step);
    return failure ? std::optional(failure->code) : std::nullopt;
  }
};

/// What a start writes, and what must be true of it from then on.
struct Write {
  std::function<void(RunRecords&)> write;
  std::function<bool(RunRecords&)> is_there;
};

const std::vector<Write>& writes() {
  static const std::vector<Write> all = {
      {[](RunRecords& mine) { (void)mine.take_incarnation(); },
       [](RunRecords& later) { return later.take_incarnation() > 2; }},
      {[](RunRecords& mine) { mine.begin_incarnation({}); },
       [](RunRecords& later) { return !later.is_newest_incarnation(); }},
      {[](RunRecords& mine) { mine.begin_incarnation({id_of(7)}); },
       [](RunRecords& later) { return later.record_of_newest_start() == persist::RunRecord{id_of(7)}; }},
      {[](RunRecords& mine) { mine.write_record(kRecord); },
       [](RunRecords& later) { return later.read_record().record == kRecord; }},
      {[](RunRecords& mine) { mine.mark_first_commit(id_of(1)); },
       [](RunRecords& later) { return later.has_first_commit({}); }},
      {[](RunRecords& mine) { mine.mark_first_manifest(id_of(1)); },
       [](RunRecords& later) { return later.has_first_manifest({}); }},
      {[](RunRecords& mine) { mine.discard(id_of(2)); },
       [](RunRecords& later) { return later.is_discarded(id_of(2)); }},
      {[](RunRecords& mine) { mine.mark_unfinished("a.1-00000000"); },
       [](RunRecords& later) {
         (void)later.take_incarnation();
         return later.unfinished() == std::vector<std::string>{"a.1-00000000"};
       }},
  };
  return all;
}

TEST_F(RunRecordsTest, WhatWasWrittenOutlivesAPowerLossRightAfterTheCall) {
  for (const Write& one : writes()) {
    for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
      make_prefix();
      RunRecords mine = start();
      one.write(mine);
      disk.restart(Crash::power, seed);
      RunRecords later = records();
      EXPECT_TRUE(one.is_there(later)) << "write " << &one - writes().data() << ", seed " << seed;
    }
  }
}

/// What an earlier try left may not be on stable storage yet.
TEST_F(RunRecordsTest, WhatASecondTryWroteOutlivesAPowerLossToo) {
  for (std::uint64_t n = 1; n <= 4; ++n) {
    for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
      make_prefix();
      RunRecords mine = start();
      disk.fail(0, disk.operations(0) + n, EIO);
      (void)failure_of([&] { mine.mark_first_commit(id_of(1)); });
      disk.heal(0);
      mine.mark_first_commit(id_of(1));
      disk.restart(Crash::power, seed);
      EXPECT_TRUE(records().has_first_commit({})) << "operation " << n << ", seed " << seed;
    }
  }
}

TEST_F(RunRecordsTest, CommitsThatWereForgottenStayForgotten) {
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    RunRecords mine = begun();
    mine.mark_first_commit(id_of(1));
    mine.remove_commit_markers();
    disk.restart(Crash::power, seed);
    EXPECT_FALSE(records().has_first_commit({})) << "seed " << seed;
  }
}

TEST_F(RunRecordsTest, StartsAtTheSameTimeNeverTakeTheSameNumber) {
  constexpr int kStarts = 4;
  constexpr int kRounds = 40;
  (void)records();
  std::barrier all(kStarts);
  std::vector<std::vector<std::uint64_t>> taken(kStarts);
  std::vector<std::thread> threads;
  threads.reserve(kStarts);
  for (int start = 0; start < kStarts; ++start) {
    threads.emplace_back([&, start] {
      RunRecords mine(disk.view(start), "/d/prefix", "heat");
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

TEST_F(RunRecordsTest, TheNextNumberIsGreaterThanAllWhateverIsMissingBelow) {
  (void)records();
  plant("incarnation-5000");
  EXPECT_EQ(records().take_incarnation(), 5001U);
}

/// After the greatest there is none; and commits of a start beyond the range would be refused when they are read.
TEST_F(RunRecordsTest, NumbersThatNoStartCanHaveHadAreIgnored) {
  RunRecords mine = start();
  plant("incarnation-18446744073709551615");
  plant("incarnation-2305843009213693952");
  plant("incarnation-2305843009213");
  plant("begun-18446744073709551615");
  plant("begun-2305843009213693952");
  mine.begin_incarnation({});
  EXPECT_TRUE(mine.is_newest_incarnation());
  EXPECT_EQ(records().take_incarnation(), 2U);
}

/// Such as a removal leaves that was killed, or a loss of files.
TEST_F(RunRecordsTest, AStartIsNewerThanAllThatBegunWhateverNumbersAreLost) {
  (void)records();
  plant("begun-7");
  RunRecords mine = start();
  mine.begin_incarnation({});
  EXPECT_TRUE(mine.is_newest_incarnation());
  EXPECT_TRUE(has("begun-8"));
}

/// 17 paths of 4 KiB in hexadecimal are more than 64 KiB.
TEST_F(RunRecordsTest, ARecordOfManyLongPathsIsReadWhole) {
  persist::RunRecord record = kRecord;
  record.former_prefixes.assign(16, std::string(4000, '\xe9'));
  RunRecords mine = start();
  mine.begin_incarnation(record);
  mine.write_record(record);
  EXPECT_EQ(records().read_record().record, record);
  EXPECT_TRUE(mine.is_newest_incarnation());
}

TEST_F(RunRecordsTest, WhoOnlyTookANumberSupersedesNobodyAndWhoHasBegunAllBefore) {
  RunRecords older = begun();
  RunRecords newer = start();
  newer.write_nonce(id_of(3));
  plant("begun-9x");
  plant("incarnation-9x");
  EXPECT_TRUE(older.is_newest_incarnation());
  newer.begin_incarnation({});
  EXPECT_FALSE(older.is_newest_incarnation());
  newer.mark_first_commit(id_of(1));
  const std::vector<std::function<void()>> refused = {
      [&] { older.mark_first_commit(id_of(2)); },     [&] { older.begin_incarnation({}); },
      [&] { older.require_newest_incarnation(); },    [&] { older.remove_commit_markers(); },
      [&] { older.mark_unfinished("a.1-00000000"); }, [&] { (void)older.unfinished(); },
  };
  for (const auto& step : refused) EXPECT_EQ(code_of(step), ErrorCode::busy);
  EXPECT_TRUE(newer.has_first_commit({}));
  EXPECT_THAT(newer.unfinished(), IsEmpty());
  EXPECT_EQ(records().take_incarnation(), 3U);
}

TEST_F(RunRecordsTest, WhoWithdrawsLeavesNothingAndTakesNothingFromWhoCameAfter) {
  RunRecords older = begun();
  RunRecords newer = begun();
  newer.write_nonce(id_of(3));
  newer.withdraw_incarnation();
  EXPECT_TRUE(older.is_newest_incarnation());
  EXPECT_FALSE(has("nonce-2") || has("begun-2") || has("incarnation-2"));
  RunRecords next = begun();
  EXPECT_TRUE(has("incarnation-2"));
  newer.withdraw_incarnation();
  EXPECT_TRUE(has("incarnation-2") && has("begun-2")) << "they are another start's now";
  EXPECT_FALSE(older.is_newest_incarnation());
}

TEST_F(RunRecordsTest, NoncesOfStartsBeforeAreRemovedAndThoseOfLaterOnesStay) {
  RunRecords older = start();
  plant("nonce-1", "left by a start that came to nothing");
  older.write_nonce(id_of(1));
  EXPECT_EQ(disk.read_all(path_of("nonce-1")).size(), 33U);
  RunRecords newer = start();
  newer.write_nonce(id_of(2));
  older.remove_nonces();
  EXPECT_FALSE(has("nonce-1"));
  EXPECT_TRUE(has("nonce-2"));
  older.write_nonce(id_of(1));
  newer.remove_nonces();
  EXPECT_FALSE(has("nonce-1") || has("nonce-2"));
}

TEST_F(RunRecordsTest, UnfinishedWorkIsThatOfThisStartAndThoseBefore) {
  RunRecords older = begun();
  older.mark_unfinished("a.1-00000000");
  older.mark_unfinished("b.2-00000000");
  RunRecords newer = start();
  newer.mark_unfinished("a.1-00000000");
  newer.mark_unfinished("c.3-00000000");
  EXPECT_THAT(older.unfinished(), ElementsAre("a.1-00000000", "b.2-00000000"));
  older.unmark_unfinished("a.1-00000000");
  EXPECT_THAT(older.unfinished(), ElementsAre("b.2-00000000"));
  EXPECT_THAT(newer.unfinished(), ElementsAre("b.2-00000000", "a.1-00000000", "c.3-00000000"));
  newer.unmark_unfinished("b.2-00000000");
  EXPECT_THAT(newer.unfinished(), ElementsAre("a.1-00000000", "c.3-00000000"));
}

TEST_F(RunRecordsTest, NamesThatNoStartWritesAreNoUnfinishedWork) {
  RunRecords mine = begun();
  for (const char* name : {"unfinished-99999999999999999999-a.1-00000000", "unfinished-1.a.1-00000000", "unfinished-1",
                           "unfinished-", "remembered-1-a.1-00000000"}) {
    plant(name);
  }
  EXPECT_THAT(mine.unfinished(), IsEmpty());
}

TEST_F(RunRecordsTest, TheRecordIsThatWhichWasWrittenWhateverAnEarlierTryLeft) {
  RunRecords mine = start();
  EXPECT_FALSE(mine.read_record().record);
  EXPECT_FALSE(mine.read_record().damaged);
  plant("run.json.new-1", "half a rec");
  mine.write_record(kRecord);
  EXPECT_EQ(records().read_record().record, kRecord);
}

TEST_F(RunRecordsTest, ARecordWithAnyByteChangedIsDamaged) {
  start().write_record(kRecord);
  const auto bytes = disk.read_all(path_of("run.json"));
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    auto changed = bytes;
    changed[i] ^= std::byte{1};
    disk.write_all(path_of("run.json"), changed);
    const auto found = records().read_record();
    // Between the fields, one white space is as good as another.
    EXPECT_TRUE(found.damaged || found.record == kRecord) << "byte " << i;
    EXPECT_TRUE(found.damaged || bytes[i] == std::byte{' '} || bytes[i] == std::byte{'\n'}) << "byte " << i;
  }
  for (const char* text : {"", "{}", "[]", "7", R"({"run_id":7})", R"({"run_id":"7"})"}) {
    plant("run.json", text);
    EXPECT_TRUE(records().read_record().damaged) << text;
  }
}

TEST_F(RunRecordsTest, TheNewestStartThatNotedAnIdIsBelieved) {
  for (const int id : {3, 4, 5}) {
    RunRecords mine = start();
    mine.begin_incarnation({id_of(static_cast<std::uint8_t>(id))});
  }
  const auto newest_id = [&] { return records().record_of_newest_start().value_or(persist::RunRecord{}).run_id; };
  EXPECT_EQ(newest_id(), id_of(5));
  plant("begun-3", "0000");
  EXPECT_EQ(newest_id(), id_of(4));
  plant("begun-2", std::string(32, '0'));
  EXPECT_EQ(newest_id(), id_of(3));
  plant("begun-1", "");
  EXPECT_TRUE(newest_id().is_none());
}

TEST_F(RunRecordsTest, NotesOfTheRunThatWasHereBeforeDoNotCountAndGo) {
  RunRecords before = start();
  before.begin_incarnation({id_of(3)});
  before.mark_first_commit(id_of(1));
  before.mark_first_manifest(id_of(1));
  RunRecords mine = start();
  EXPECT_TRUE(mine.has_first_commit(id_of(3)) && mine.has_first_manifest(id_of(3)));
  EXPECT_TRUE(mine.has_first_commit({}) && mine.has_first_manifest({}));
  EXPECT_FALSE(mine.has_first_commit(id_of(4)) || mine.has_first_manifest(id_of(4)));
  mine.remove_markers_of_others(id_of(3));
  EXPECT_TRUE(persist::has_checkpoints(*system, mine.directory()));
  mine.remove_markers_of_others(id_of(4));
  EXPECT_FALSE(persist::has_checkpoints(*system, mine.directory()));
  plant("first-commit", "half");
  EXPECT_TRUE(mine.has_first_commit(id_of(4))) << "whose it is cannot be read: it may be this run's";
}

/// Where records were removed and made again, numbers begin at 1.
TEST_F(RunRecordsTest, AStartWhoseRecordsWereRemovedIsSuperseded) {
  RunRecords mine = start();
  mine.begin_incarnation({id_of(3)});
  EXPECT_TRUE(mine.is_newest_incarnation());
  disk.remove_all(path_of("begun-1"));
  EXPECT_FALSE(mine.is_newest_incarnation());
  plant("begun-1", "another's");
  EXPECT_EQ(code_of([&] { mine.require_newest_incarnation(); }), ErrorCode::busy);
}

TEST_F(RunRecordsTest, ARecordThatCannotBeReadCountsAsDamaged) {
  start().write_record(kRecord);
  disk.make_unreadable(path_of("run.json"), 0);
  EXPECT_TRUE(records().read_record().damaged);
}

TEST_F(RunRecordsTest, APrefixIsMadeWithAllThatLeadsToItAndAFileIsNone) {
  (void)failure_of([&] { RunRecords(system, "/d/a/b/c", "heat"); });  // there is no umask: it is open to all
  EXPECT_TRUE(system->status("/d/a/b/c"));
  disk.write_all("/d/file", bytes_of(1, 1));
  const auto failure = failure_of([&] { RunRecords(system, "/d/file", "heat"); });
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->code, ErrorCode::io);
  EXPECT_THAT(failure->message, ::testing::HasSubstr("choose another prefix"));
  (void)records();
  plant("../other");
  EXPECT_EQ(code_of([&] { RunRecords(system, "/d/prefix", "other"); }), ErrorCode::io);
}

TEST(PrefixWithoutUmask, IsOneThatTheNextStartAccepts) {
  const std::string directory = testing::TempDir() + "kedge-umask-" + std::to_string(::getpid());
  const mode_t before = ::umask(0);
  for (int start = 0; start < 2; ++start) {
    EXPECT_NO_THROW((void)persist::make_prefix(*fs::posix_file_system(), directory + "/a/b")) << "start " << start;
  }
  ::umask(before);
  std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace kedge::faults::run_records_test
