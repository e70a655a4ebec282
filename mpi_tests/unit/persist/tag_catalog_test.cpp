// The run's list of its persistent commits: what crashes, damage and full disks leave of it.
#include <gtest/gtest.h>

#include <cerrno>
#include <set>
#include <span>
#include <string>

#include "base/text.hpp"
#include "checksum/crc32c.hpp"
#include "harness/faulty_fixture.hpp"
#include "persist/tag_catalog.hpp"
#include "persist/tag_directory.hpp"

namespace kedge::faults::tag_catalog_test {
namespace {

using persist::TagCatalog;
using persist::TagEntry;

TagEntry entry(std::uint64_t generation) {
  TagEntry entry;
  entry.commit.tag = compose("step-{:06}", 100 * generation);
  entry.commit.generation = generation;
  entry.commit.id.bytes.fill(static_cast<std::uint8_t>(generation));
  entry.commit.parent_id.bytes.fill(static_cast<std::uint8_t>(generation - 1));
  entry.commit.run_id.bytes.fill(0xee);
  entry.run = "heat";
  entry.commit.incarnation = std::uint64_t{1} << 61U;
  entry.commit.world_size = 4096;
  entry.commit.time_ns = 1'790'000'000'123'456'789;
  entry.total_bytes = std::uint64_t{1} << 50U;
  entry.directory = persist::tag_directory_name(entry.commit);
  return entry;
}

class Catalog : public Faulty {
 protected:
  TagCatalog catalog() { return {*system, "/d"}; }
  std::string text() const {
    const auto bytes = disk.read_all("/d/tags.jsonl");
    std::string text;
    for (const std::byte byte : bytes) text += static_cast<char>(byte);
    return text;
  }
};

TEST_F(Catalog, GivesBackWhatWasAddedAndNotRemoved) {
  TagCatalog mine = catalog();
  EXPECT_TRUE(mine.read().empty());
  for (const std::uint64_t generation : {1U, 2U, 3U}) mine.add(entry(generation));
  mine.remove(entry(2).directory);
  mine.remove("never.1-01234567");
  EXPECT_EQ(catalog().read(), (std::vector{entry(1), entry(3)}));
  mine.add(entry(2));
  EXPECT_EQ(mine.read(), (std::vector{entry(1), entry(3), entry(2)}));
}

TEST_F(Catalog, WhatIsAddedTwiceIsThereOnce) {
  TagCatalog mine = catalog();
  for (const std::uint64_t generation : {1U, 2U, 1U}) mine.add(entry(generation));
  EXPECT_EQ(catalog().read(), (std::vector{entry(2), entry(1)}));
}

/// Of a newer Kedge: its checksum is right, and its fields are not ours.
TEST_F(Catalog, ALineWithoutAnIdOfOursIsPassedOver) {
  catalog().add(entry(1));
  std::string line = text();
  const std::size_t id = line.find("01010101");
  line.replace(id, 8, "no-digit");
  const std::size_t tail = line.rfind(",\"crc\":\"");
  const std::uint32_t crc = crc32c(std::as_bytes(std::span(line.data(), tail)));
  line = line.substr(0, tail) + compose(",\"crc\":\"{:08x}\"}}\n", crc);
  disk.write_all("/d/tags.jsonl", std::as_bytes(std::span(line)));
  EXPECT_TRUE(catalog().read().empty());
}

TEST_F(Catalog, ADamagedLineLosesOnlyItself) {
  for (const std::uint64_t generation : {1U, 2U, 3U}) catalog().add(entry(generation));
  const std::size_t line = text().find('\n') + 1;
  for (std::size_t at = line; at < 2 * line - 1; at += 7) {
    disk.flip_bit("/d/tags.jsonl", at, at % 8);
    const auto left = catalog().read();
    ASSERT_GE(left.size(), 2U) << at;
    EXPECT_EQ(left.front(), entry(1)) << at;
    EXPECT_EQ(left.back(), entry(3)) << at;
    EXPECT_EQ(left.size(), 2U) << at;
    disk.flip_bit("/d/tags.jsonl", at, at % 8);
  }
  EXPECT_EQ(catalog().read().size(), 3U);
}

TEST_F(Catalog, ATornLastLineSpoilsNothingThatFollows) {
  catalog().add(entry(1));
  catalog().add(entry(2));
  const std::size_t whole = text().size();
  for (std::size_t left = whole / 2 + 1; left < whole; ++left) {
    disk.truncate_from_outside("/d/tags.jsonl", left);
    const bool only_newline_lost = left == whole - 1;
    EXPECT_EQ(catalog().read().size(), only_newline_lost ? 2U : 1U) << left;
    catalog().add(entry(3));
    EXPECT_EQ(catalog().read().back(), entry(3)) << left;
    EXPECT_EQ(catalog().read().front(), entry(1)) << left;
    disk.remove_all("/d/tags.jsonl");
    catalog().add(entry(1));
    catalog().add(entry(2));
  }
}

TEST_F(Catalog, WhatIsNoEntryOfOursIsPassedOver) {
  const std::string junk = "\n\n{}\nnull\n{\"added\":{}}\n[[[[[[\n\xff\xfe\n";
  disk.write_all("/d/tags.jsonl", std::as_bytes(std::span(junk)));
  EXPECT_TRUE(catalog().read().empty());
  catalog().add(entry(1));
  EXPECT_EQ(catalog().read(), std::vector{entry(1)});
}

TEST_F(Catalog, AnAddThatReturnedOutlivesAPowerLossAtAnyPoint) {
  for (std::uint64_t stop = 1; stop < 30; ++stop) {
    disk.remove_all("/d/tags.jsonl");
    disk.restart();
    disk.stop_world_after(0, stop, stop);
    std::set<std::uint64_t> added;
    const bool died = dies([&] {
      TagCatalog mine = catalog();
      for (const std::uint64_t generation : {1U, 2U, 3U}) {
        mine.add(entry(generation));
        added.insert(generation);
      }
    });
    disk.restart(Crash::power, stop);
    std::set<std::uint64_t> found;
    for (const TagEntry& one : catalog().read()) {
      EXPECT_EQ(one, entry(one.commit.generation));
      found.insert(one.commit.generation);
    }
    for (const std::uint64_t generation : added) EXPECT_TRUE(found.contains(generation)) << stop;
    if (!died) return;  // the end of the history was reached
  }
  FAIL() << "the history never came to its end";
}

TEST_F(Catalog, AfterAFullDiskTheNextAddCounts) {
  catalog().add(entry(1));
  for (const int error : {ENOSPC, EIO}) {
    for (std::uint64_t operation = 1; operation <= 3; ++operation) {
      disk.restart();
      disk.fail(0, operation, error);
      static_cast<void>(failure_of([&] { catalog().add(entry(2)); }));
      disk.heal(0);
      catalog().add(entry(3));
      EXPECT_EQ(catalog().read().front(), entry(1));
      EXPECT_EQ(catalog().read().back(), entry(3));
    }
  }
  disk.restart();
  disk.fail(0, 2, ENOSPC);  // the write: create comes first
  const auto failure = failure_of([&] { catalog().add(entry(2)); });
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->code, ErrorCode::no_space);
}

TEST_F(Catalog, DoesNotGrowWithoutEndWhenTagsComeAndGo) {
  TagCatalog mine = catalog();
  for (std::uint64_t generation = 1; generation <= 250; ++generation) {
    mine.add(entry(generation));
    if (generation > 3) mine.remove(entry(generation - 3).directory);
  }
  EXPECT_EQ(mine.read(), (std::vector{entry(248), entry(249), entry(250)}));
  const std::string now = text();
  EXPECT_LT(std::count(now.begin(), now.end(), '\n'), 200);
}

TEST_F(Catalog, WhatARewriteAndAnAddAfterItWroteOutlivesAPowerLoss) {
  for (const bool add_after : {false, true}) {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      disk.remove_all("/d/tags.jsonl");
      disk.restart();
      const std::string cut_short = "what a crash left";
      disk.write_all("/d/tags.jsonl.new", std::as_bytes(std::span(cut_short)));
      TagCatalog mine = catalog();
      mine.add(entry(1));
      std::size_t before = 0;
      for (std::uint64_t generation = 2; text().size() >= before; ++generation) {
        ASSERT_LT(generation, 200U) << "it is never written anew";
        mine.add(entry(generation));
        before = text().size();
        mine.remove(entry(generation).directory);
      }
      if (add_after) mine.add(entry(250));
      disk.restart(Crash::power, seed);
      EXPECT_EQ(catalog().read(), add_after ? (std::vector{entry(1), entry(250)}) : std::vector{entry(1)}) << seed;
    }
  }
}

TEST_F(Catalog, ARewriteCutShortLosesNothing) {
  for (std::uint64_t stop = 1; stop < 600; stop += 3) {
    disk.remove_all("/d/tags.jsonl");
    disk.restart();
    disk.stop_world_after(0, stop, stop);
    std::uint64_t added = 0;
    const bool died = dies([&] {
      TagCatalog mine = catalog();
      mine.add(entry(1));
      added = 1;
      for (std::uint64_t generation = 2; generation <= 70; ++generation) {
        mine.add(entry(generation));
        mine.remove(entry(generation).directory);
      }
    });
    disk.restart(Crash::power, stop);
    const auto left = catalog().read();
    if (added > 0) {
      EXPECT_TRUE(!left.empty() && left.front() == entry(1)) << stop;
    }
    EXPECT_LE(left.size(), 2U) << stop;
    catalog().add(entry(99));
    EXPECT_EQ(catalog().read().back(), entry(99)) << stop;
    if (!died) return;
  }
  FAIL() << "the history never came to its end";
}

TEST_F(Catalog, FollowsNoLink) {
  disk.write_all("/secret", bytes_of(10, 'x'));
  disk.plant_link("/d/tags.jsonl", "/secret");
  const auto failure = failure_of([&] { catalog().add(entry(1)); });
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->code, ErrorCode::io);
  EXPECT_EQ(disk.read_all("/secret").size(), 10U);
}

}  // namespace
}  // namespace kedge::faults::tag_catalog_test
