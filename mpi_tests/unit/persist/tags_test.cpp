// Which commits a prefix has: by manifests and catalogs, over damage, links, liars and filesystems that fail.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <functional>
#include <string>

#include "base/text.hpp"
#include "harness/faulty_fixture.hpp"
#include "harness/sample_prefix.hpp"
#include "persist/tag_catalog.hpp"
#include "persist/tag_directory.hpp"
#include "persist/tags.hpp"

namespace kedge::faults::tags_test {
namespace {

using persist::TagEntry;
using persist::TagList;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Kind = fs::FileStatus::Kind;

TagEntry entry(std::uint64_t generation) { return testing::sample_entry(generation); }

constexpr std::uint32_t kOther = 1001;

class Tags : public Faulty {
 protected:
  void add(const TagEntry& entry) {
    disk.make_directories("/d/" + entry.directory, 0755);
    disk.write_all(manifest(entry), testing::sample_manifest(entry));
  }
  /// Checks while the group or all others may write there, and at last, which stays so, while it is another user's.
  void for_others(const std::string& path, const std::function<void()>& check) {
    const auto own = *system->status(path);
    for (const std::uint32_t may_write : {0020U, 0002U}) {
      SCOPED_TRACE(path + " may be written with mode bit " + std::to_string(may_write));
      auto open_to_others = own;
      open_to_others.mode |= may_write;
      disk.plant(path, open_to_others);
      check();
    }
    SCOPED_TRACE(path + " is another user's");
    auto foreign = own;
    foreign.owner = kOther;
    disk.plant(path, foreign);
    check();
  }
  void catalog(const TagEntry& entry, const std::string& run = "heat") {
    disk.make_directories("/d/.kedge/" + run, 0755);
    persist::TagCatalog(*system, "/d/.kedge/" + run).add(entry);
  }
  static std::string manifest(const TagEntry& entry) { return "/d/" + entry.directory + "/checkpoint.h5"; }
  TagList list() { return persist::list_tags(*system, "/d"); }
  std::string why(const TagEntry& entry, ErrorCode code) {
    const auto failure = failure_of([&] { static_cast<void>(persist::read_tag(*system, "/d", entry.directory)); });
    if (!failure) return "it was read";
    EXPECT_EQ(failure->code, code) << failure->message;
    return failure->message;
  }
};

TEST_F(Tags, ListsNewestFirstByManifestsAlone) {
  for (const unsigned generation : {2U, 10U, 1U}) add(entry(generation));
  disk.write_all("/d/" + entry(2).directory + "/pinned", {});
  disk.write_all("/d/latest", bytes_of(5, 'x'));
  disk.make_directories("/d/somebody-elses/checkpoint.h5");
  TagEntry pinned = entry(2);
  pinned.pinned = true;
  const TagList found = list();
  EXPECT_THAT(found.entries, ElementsAre(entry(10), pinned, entry(1)));
  EXPECT_THAT(found.unusable_tags, IsEmpty());
  EXPECT_EQ(persist::read_tag(*system, "/d", pinned.directory), pinned);
}

TEST_F(Tags, ADirectoryWithoutManifestIsNotCommittedWhateverACatalogSays) {
  disk.make_directories("/d/" + entry(3).directory + "/data/0");
  catalog(entry(3));
  const TagList found = list();
  EXPECT_THAT(found.entries, IsEmpty());
  ASSERT_THAT(found.unusable_tags, SizeIs(1));
  EXPECT_FALSE(found.unusable_tags[0].has_manifest);
  EXPECT_EQ(found.unusable_tags[0].directory, entry(3).directory);
  EXPECT_THAT(found.unusable_tags[0].reason, HasSubstr("a flush or removal is in progress or was interrupted"));
  EXPECT_THAT(why(entry(3), ErrorCode::not_found), HasSubstr("no checkpoint.h5"));
}

TEST_F(Tags, TheCatalogSparesManifestsAndThreeLooksATagAreEnough) {
  constexpr unsigned kTags = 50;
  for (unsigned generation = 1; generation <= kTags; ++generation) {
    add(entry(generation));
    catalog(entry(generation));
  }
  const std::uint64_t before = disk.reads(0);
  const std::uint64_t bytes_before = disk.bytes_read("/d/" + entry(7).directory);
  EXPECT_THAT(list().entries, SizeIs(kTags));
  EXPECT_LE(disk.reads(0) - before, 3 * kTags + 20);
  EXPECT_EQ(disk.bytes_read("/d/" + entry(7).directory), bytes_before);
}

TEST_F(Tags, WhatACatalogSaysIsBelievedOnlyOfItsOwnersAndItsOwnRunsDirectories) {
  TagEntry lie = entry(1);
  lie.commit.world_size = 77;
  add(entry(1));
  catalog(lie);
  EXPECT_THAT(list().entries, ElementsAre(lie));  // this is what it costs to believe oneself
  const std::string file = "/d/.kedge/heat/tags.jsonl";
  const auto status = *system->status(file);
  for_others(file, [&] { EXPECT_THAT(list().entries, ElementsAre(entry(1))); });
  disk.plant(file, status);
  disk.remove_all("/d/.kedge");
  catalog(lie, "evil");  // another run's catalog
  EXPECT_THAT(list().entries, ElementsAre(entry(1)));
  disk.remove_all("/d/.kedge");
  lie.commit.id.bytes[0] ^= 1U;  // of another commit that had this name
  catalog(lie);
  EXPECT_THAT(list().entries, ElementsAre(entry(1)));
}

TEST_F(Tags, ACatalogInADirectoryThatOthersCanChangeIsNotBelieved) {
  TagEntry lie = entry(1);
  lie.commit.world_size = 77;
  add(entry(1));
  catalog(lie);
  const std::string directory = "/d/.kedge/heat";
  for_others(directory, [&] { EXPECT_THAT(list().entries, ElementsAre(entry(1))); });
  auto file = *system->status(directory + "/tags.jsonl");
  file.owner = kOther;  // all of it is another user's, and says what lies in this user's directory
  disk.plant(directory + "/tags.jsonl", file);
  EXPECT_THAT(list().entries, ElementsAre(entry(1)));
}

TEST_F(Tags, ACatalogBehindALinkIsNotBelieved) {
  TagEntry lie = entry(1);
  lie.commit.world_size = 77;
  add(entry(1));
  catalog(lie);
  const std::string records = "/d/.kedge";
  disk.make_directories("/elsewhere/heat", 0755);
  disk.write_all("/elsewhere/heat/tags.jsonl", disk.read_all(records + "/heat/tags.jsonl"));
  disk.remove_all(records);
  disk.plant_link(records, "/elsewhere");
  EXPECT_THAT(list().entries, ElementsAre(entry(1)));
}

/// A claim goes by the directory's name, so it must be that of the commit which it claims.
TEST_F(Tags, ACatalogThatGivesADirectoryAnotherCommitIsNotBelieved) {
  TagEntry lie = entry(1);
  ++lie.commit.generation;
  add(entry(1));
  catalog(lie);
  EXPECT_THAT(list().entries, ElementsAre(entry(1)));
}

TEST_F(Tags, ADamagedCatalogCostsTimeOnly) {
  for (const unsigned generation : {1U, 2U}) {
    add(entry(generation));
    catalog(entry(generation));
  }
  for (std::uint64_t at = 0; at < disk.read_all("/d/.kedge/heat/tags.jsonl").size(); at += 13) {
    disk.flip_bit("/d/.kedge/heat/tags.jsonl", at, at % 8);
    EXPECT_THAT(list().entries, ElementsAre(entry(2), entry(1))) << at;
  }
  disk.remove_all("/d/.kedge");
  disk.plant_link("/d/.kedge", "/d");
  EXPECT_THAT(list().entries, SizeIs(2));
}

TEST_F(Tags, ADamagedManifestIsNamedAndTheOthersStay) {
  for (const unsigned generation : {1U, 2U, 3U}) add(entry(generation));
  disk.flip_bit(manifest(entry(2)), 700);
  disk.truncate_from_outside(manifest(entry(3)), 100);
  const TagList found = list();
  EXPECT_THAT(found.entries, ElementsAre(entry(1)));
  ASSERT_THAT(found.unusable_tags, SizeIs(2));
  for (const auto& unusable : found.unusable_tags) {
    EXPECT_TRUE(unusable.has_manifest);
    EXPECT_EQ(unusable.code, ErrorCode::corrupt);
    EXPECT_FALSE(unusable.reason.empty());
  }
}

TEST_F(Tags, AManifestOfAnotherTagIsRefused) {
  add(entry(1));
  add(entry(2));
  disk.write_all(manifest(entry(1)), disk.read_all(manifest(entry(2))));
  EXPECT_THAT(why(entry(1), ErrorCode::corrupt), HasSubstr(entry(2).directory));
  EXPECT_THAT(list().entries, ElementsAre(entry(2)));
  TagEntry copy = entry(2);
  copy.directory = "my copy";  // anybody may call a copy as he likes
  disk.make_directories("/d/my copy");
  disk.write_all("/d/my copy/checkpoint.h5", disk.read_all(manifest(entry(2))));
  EXPECT_EQ(persist::read_tag(*system, "/d", copy.directory), copy);
}

TEST_F(Tags, FollowsNoLinkAndParsesNothingForeign) {
  add(entry(1));
  disk.plant_link("/d/" + entry(2).directory, "/d/" + entry(1).directory);
  disk.make_directories("/d/" + entry(3).directory);
  disk.plant_link(manifest(entry(3)), manifest(entry(1)));
  disk.make_directories(manifest(entry(4)));
  disk.write_all("/d/" + entry(5).directory, bytes_of(10, 'x'));
  const TagList found = list();
  EXPECT_THAT(found.entries, ElementsAre(entry(1)));
  EXPECT_THAT(found.unusable_tags, SizeIs(4));
  for (const auto& unusable : found.unusable_tags) EXPECT_EQ(unusable.code, ErrorCode::io) << unusable.directory;
  for (const unsigned generation : {2U, 3U, 4U, 5U}) static_cast<void>(why(entry(generation), ErrorCode::io));
}

TEST_F(Tags, ListingThrowsOnlyIfTheDirectoryItselfCannotBeListed) {
  EXPECT_EQ(failure_of([&] { static_cast<void>(persist::list_tags(*system, "/nowhere")); })->code,
            ErrorCode::not_found);
  for (const unsigned generation : {1U, 2U}) {
    add(entry(generation));
    catalog(entry(generation));
  }
  disk.restart();
  disk.fail_read(0, 1, EIO);
  EXPECT_EQ(failure_of([&] { static_cast<void>(list()); })->code, ErrorCode::io);
  for (std::uint64_t read = 2; read < 20; ++read) {
    disk.restart();
    disk.fail_read(0, read, EIO);
    TagList found;
    ASSERT_FALSE(failure_of([&] { found = list(); })) << read;
    EXPECT_EQ(found.entries.size() + found.unusable_tags.size(), 2U) << read;
    for (const auto& unusable : found.unusable_tags) EXPECT_EQ(unusable.code, ErrorCode::io) << read;
  }
}

}  // namespace
}  // namespace kedge::faults::tags_test
