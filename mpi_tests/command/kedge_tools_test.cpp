// Parts of the kedge command that no command line can reach in a test: what changes while it looks, and time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <span>

#include "base/text.hpp"
#include "fs/file_system.hpp"
#include "harness/sample_store.hpp"
#include "tools/examine.hpp"
#include "tools/progress.hpp"
#include "tools/text_format.hpp"

namespace kedge::tools::kedge_tools_test {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

void overwrite(const std::string& path, std::uint64_t offset, std::span<const std::byte> bytes) {
  fs::posix_file_system()->open(path, fs::Access::read_write)->write_with_crc(offset, bytes, 0);
}

// The state of a container that `meddle` changes after the superblock was read and before the data is.
template <class Meddle>
Finding check_while(const std::string& path, Meddle meddle) {
  bool done = false;
  return check_file(*fs::posix_file_system(), path, std::nullopt, [&](std::uint64_t) {
    if (!done) meddle();
    done = true;
  });
}

TEST(CheckContainer, AContainerRecycledMeanwhileIsNoDamage) {
  testing::SampleStore store;
  const std::string path = store.add("rank-2.0.h5", testing::sample_regions(), testing::sample_identity());
  const std::array<std::byte, 4096> zeros{};
  const Finding unsealed = check_while(path, [&] {
    overwrite(path, 0, zeros);
    overwrite(path, 70000, zeros);
  });
  EXPECT_EQ(unsealed.state, Finding::State::unsealed);
  EXPECT_THAT(unsealed.reason, HasSubstr("while it was read"));
  EXPECT_THAT(unsealed.damages, IsEmpty());

  store.add("rank-2.0.h5", testing::sample_regions(), testing::sample_identity());
  const Finding cut = check_while(path, [&] {
    overwrite(path, 0, zeros);
    testing::truncate(path, 4096);
  });
  EXPECT_EQ(cut.state, Finding::State::unsealed) << cut.reason;
}

TEST(CheckContainer, DamageThatHappensMeanwhileIsDamage) {
  testing::SampleStore store;
  const std::string path = store.add("rank-2.0.h5", testing::sample_regions(), testing::sample_identity());
  const Finding finding = check_while(path, [&] { testing::flip_bit(path, 70000); });
  EXPECT_EQ(finding.state, Finding::State::damaged);
  ASSERT_EQ(finding.damages.size(), 1U);
  EXPECT_EQ(finding.damages[0].description, "region 'field'");
}

TEST(CheckContainer, ReportsAllBytesAsProgress) {
  testing::SampleStore store;
  const std::string path = store.add("rank-2.0.h5", testing::sample_regions(), testing::sample_identity());
  std::uint64_t seen = 0;
  const Finding finding = check_file(*fs::posix_file_system(), path, std::nullopt, [&](auto n) { seen += n; });
  EXPECT_EQ(finding.state, Finding::State::ok);
  EXPECT_EQ(seen, testing::file_size(path));
}

TEST(Classify, TellsContainersFromOthers) {
  std::array<std::byte, 4096> bytes{};
  EXPECT_EQ(classify(bytes, std::nullopt), FileKind::unsealed);
  EXPECT_EQ(classify(std::span(bytes).first(100), std::nullopt), FileKind::foreign);
  EXPECT_EQ(classify(std::span(bytes).first(100), store::FileKind::container), FileKind::unsealed);
  EXPECT_EQ(classify(std::span(bytes).first(0), std::nullopt), FileKind::foreign);
  bytes[9] = std::byte{1};
  EXPECT_EQ(classify(bytes, std::nullopt), FileKind::foreign);
  EXPECT_EQ(classify(bytes, store::FileKind::container), FileKind::container);
  const auto sealed = format::encode_superblock(testing::sample_identity());
  EXPECT_EQ(classify(sealed, std::nullopt), FileKind::container);
}

TEST(FileNames, AreReadBackAsTheyAreWritten) {
  const std::array<std::pair<store::FileKind, std::string>, 3> names{{{store::FileKind::container, "rank-31.2.h5"},
                                                                      {store::FileKind::parity, "parity-31.2.kedge"},
                                                                      {store::FileKind::descriptor, "set-31.2.kedge"}}};
  for (const auto& [kind, text] : names) {
    const store::FileName name{kind, LogicalRank{31}, 2};
    EXPECT_EQ(store::to_string(name), text);
    EXPECT_EQ(store::parse_file_name(text), name);
  }
  for (const auto* other : {"rank-.h5",
                            "rank-1.h5",
                            "rank-1.2.h5x",
                            "rank-01.2.h5",
                            "rank-1.02.h5",
                            "rank--1.2.h5",
                            "rank-1.2",
                            "rank-1.2.3.h5",
                            "rank-99999999999.0.h5",
                            "rank.h5",
                            "routed-1.0",
                            "parity-1.2.h5",
                            "rank-1.2.kedge",
                            "set-1.2.h5",
                            "set-01.2.kedge",
                            "set-1.02.kedge",
                            "set-.kedge",
                            "set-1.kedge",
                            "set-1.2.3.kedge",
                            "set-1.2.kedge~",
                            "set--1.2.kedge",
                            "parity-4294967296.0.kedge",
                            "parity-0.4294967296.kedge",
                            "parity.kedge",
                            ".kedge",
                            ""}) {
    EXPECT_FALSE(store::parse_file_name(other)) << other;
  }
}

TEST(Printable, LeavesTextAndShowsTheRest) {
  EXPECT_EQ(printable("temperature/T \xc3\xa4 \xe2\x88\x87 \xf0\x9f\x8c\x8a"),
            "temperature/T \xc3\xa4 \xe2\x88\x87 \xf0\x9f\x8c\x8a");
  EXPECT_EQ(printable("a\nb\x7f"), "a\\x0ab\\x7f");
  EXPECT_EQ(printable("\xc2\x9b"), "\\xc2\\x9b");           // C1
  EXPECT_EQ(printable("\xe2\x80\xae"), "\\xe2\\x80\\xae");  // right-to-left override
  EXPECT_EQ(printable("\xc0\xaf\xff\xe2\x88"), "\\xc0\\xaf\\xff\\xe2\\x88");
}

TEST(Table, AlignsByCharactersNotBytes) {
  Table table("lr");
  table.add({"\xc3\xa4", "1"});
  table.add({"long", "100"});
  EXPECT_EQ(table.text(), "\xc3\xa4       1\nlong  100\n");
}

class StoppedClock final : public Clock {
 public:
  std::int64_t wall_ns() override { return 0; }
  double seconds() override { return now_s; }
  void sleep_for(std::chrono::duration<double> wait) override { now_s += wait.count(); }
  double now_s = 100;
};

TEST(Progress, DrawsAfterAMomentWithTheTimeLeftAndCleansUp) {
  const auto clock = std::make_shared<StoppedClock>();
  ::testing::internal::CaptureStderr();
  {
    Progress progress(1000, clock, true);
    clock->now_s += 0.5;
    progress.advance(100);
    EXPECT_THAT(::testing::internal::GetCapturedStderr(), IsEmpty());
    ::testing::internal::CaptureStderr();
    clock->now_s += 1.5;
    progress.advance(150);
  }
  const std::string drawn = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(drawn, HasSubstr("25%  250 B of 1000 B  6.00 s left"));
  EXPECT_TRUE(drawn.ends_with("\r\033[K"));
}

TEST(Progress, IsSilentWhereNobodyWatches) {
  const auto clock = std::make_shared<StoppedClock>();
  ::testing::internal::CaptureStderr();
  Progress progress(1000, clock, false);
  clock->now_s += 10;
  progress.advance(150);
  progress.clear();
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), IsEmpty());
}

}  // namespace
}  // namespace kedge::tools::kedge_tools_test
