// The record of who a run is: it is read as it was written, damage in it is found, and a lost one is rebuilt.
#include "persist/run_record.hpp"

#include <gmock/gmock.h>

#include "unit/persist/records_fixture.hpp"

namespace kedge::faults::run_record_test {
namespace {

using persist::RunStart;
using persist::testing::id_of;
using persist::testing::kRecord;

using RunRecordTest = persist::testing::RecordsTest;

/// 17 paths of 4 KiB in hexadecimal are more than 64 KiB.
TEST_F(RunRecordTest, ARecordOfManyLongPathsIsReadWhole) {
  persist::RunRecord record = kRecord;
  record.former_prefixes.assign(16, std::string(4000, '\xe9'));
  RunStart mine = start();
  mine.mark_begun(record);
  persist::write_run_record(mine, record);
  EXPECT_EQ(found().record, record);
  EXPECT_TRUE(mine.is_newest());
}

TEST_F(RunRecordTest, TheRecordIsThatWhichWasWrittenWhateverAnEarlierTryLeft) {
  RunStart mine = start();
  EXPECT_FALSE(found().record);
  EXPECT_FALSE(found().is_damaged);
  plant("run.json.new-1", "half a rec");
  persist::write_run_record(mine, kRecord);
  EXPECT_EQ(found().record, kRecord);
}

TEST_F(RunRecordTest, ARecordWithAnyByteChangedIsDamaged) {
  persist::write_run_record(start(), kRecord);
  const auto bytes = disk.read_all(path_of("run.json"));
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    auto changed = bytes;
    changed[i] ^= std::byte{1};
    disk.write_all(path_of("run.json"), changed);
    const auto read = found();
    // Between the fields, one white space is as good as another.
    EXPECT_TRUE(read.is_damaged || read.record == kRecord) << "byte " << i;
    EXPECT_TRUE(read.is_damaged || bytes[i] == std::byte{' '} || bytes[i] == std::byte{'\n'}) << "byte " << i;
  }
  for (const char* text : {"", "{}", "[]", "7", R"({"run_id":7})", R"({"run_id":"7"})"}) {
    plant("run.json", text);
    EXPECT_TRUE(found().is_damaged) << text;
  }
}

TEST_F(RunRecordTest, TheNewestStartThatNotedAnIdIsBelieved) {
  for (const int id : {3, 4, 5}) {
    RunStart mine = start();
    mine.mark_begun({id_of(static_cast<std::uint8_t>(id))});
  }
  const auto newest_id = [&] { return kept().value_or(persist::RunRecord{}).run_id; };
  EXPECT_EQ(newest_id(), id_of(5));
  plant("begun-3", "0000");
  EXPECT_EQ(newest_id(), id_of(4));
  plant("begun-2", std::string(32, '0'));
  EXPECT_EQ(newest_id(), id_of(3));
  plant("begun-1", "");
  EXPECT_TRUE(newest_id().is_none());
}

TEST_F(RunRecordTest, ARecordThatCannotBeReadCountsAsDamaged) {
  persist::write_run_record(start(), kRecord);
  disk.make_unreadable(path_of("run.json"), 0);
  EXPECT_TRUE(found().is_damaged);
}

}  // namespace
}  // namespace kedge::faults::run_record_test
