// The kedge command as people and scripts see it: words, JSON, exit status.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <memory>

#include "base/json.hpp"
#include "base/text.hpp"
#include "command/kedge_program.hpp"
#include "format/container_reader.hpp"
#include "fs/file_system.hpp"
#include "harness/sample_store.hpp"

namespace kedge::testing::kedge_command_test {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

/// The region of this name in what `kedge show --json` says of a container; null if there is none.
Json region_of(const Json& shown, const std::string& name) {
  for (const Json& region : shown["regions"]) {
    if (region["name"] == name) return region;
  }
  return {};
}

class KedgeCommand : public ::testing::Test {
 protected:
  std::string add(const std::string& name = "rank-2.0.h5") {
    return store_.add(name, sample_regions(), sample_identity());
  }
  SampleStore store_;
};

TEST_F(KedgeCommand, ShowsSuperblockInWords) {
  const Result shown = kedge("show " + add());
  EXPECT_EQ(shown.status, 0);
  EXPECT_THAT(shown.text,
              AllOf(ContainsRegex("tag +step-000100\n"), ContainsRegex("generation +7\n"),
                    ContainsRegex("commit id +(ab){16}\n"), ContainsRegex("parent +none\n"),
                    ContainsRegex("run +(11){16}\n"), ContainsRegex("incarnation +3\n"),
                    ContainsRegex("logical rank +2 of 8\n"), ContainsRegex("written +2026-09-21T14:13:20Z")));
}

TEST_F(KedgeCommand, ShowsNamesDtypesAndShapesFromTheFileAlone) {
  const std::string path = add();
  const Result shown = kedge("show " + path);
  for (const auto& region : sample_regions()) {
    EXPECT_THAT(shown.text, ContainsRegex(compose("\n{} +{} +{} +{} ", region.name, to_string(region.dtype),
                                                  to_string(region.shape), format::region_size_bytes(region))));
  }
  EXPECT_THAT(shown.text, AllOf(HasSubstr("shard of 1280 x 2048 at (640, 1024)"), HasSubstr("replicated"),
                                HasSubstr("routed file")));
}

TEST_F(KedgeCommand, GivesTheSizeOfEachRegionBeforeAnythingIsLoaded) {
  const std::string path = add();
  const Json shown = kedge_json("show " + path, 0);
  const auto regions = sample_regions();
  ASSERT_EQ(shown["regions"].size(), regions.size());
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < regions.size(); ++i) {
    const Json& region = shown["regions"][i];
    EXPECT_EQ(region["name"], regions[i].name);
    EXPECT_EQ(region["dtype"], to_string(regions[i].dtype));
    EXPECT_EQ(region["bytes"], format::region_size_bytes(regions[i])) << regions[i].name;
    EXPECT_EQ(region["shape"].size(), regions[i].shape.dimensions());
    total += format::region_size_bytes(regions[i]);
  }
  EXPECT_EQ(shown["region_bytes"], total);
  EXPECT_EQ(shown["file_bytes"], file_size(path));
  EXPECT_EQ(region_of(shown, "field")["global_offset"], (Json{640, 1024}));
  EXPECT_EQ(shown["parent_commit_id"], nullptr);
}

TEST_F(KedgeCommand, ANameCannotWriteToTheTerminal) {
  auto identity = sample_identity();
  const std::string path =
      store_.add("rank-2.0.h5", {{"a\x1b[31mred\u009b", DataType::int8, Shape{1}, {}, false}}, identity);
  const Result shown = kedge("show " + path);
  EXPECT_THAT(shown.text, AllOf(HasSubstr("a\\x1b[31mred\\xc2\\x9b"), Not(HasSubstr("\x1b"))));
}

TEST_F(KedgeCommand, VerifiesAContainer) {
  const Result verified = kedge("verify " + add());
  EXPECT_EQ(verified.status, 0) << verified.text;
  EXPECT_THAT(verified.text,
              AllOf(StartsWith("ok"), HasSubstr("step-000100 of rank 2 of 8"), HasSubstr("1 ok, 0 damaged")));
  EXPECT_THAT(kedge("verify -q " + store_.directory()).text, IsEmpty());
}

TEST_F(KedgeCommand, SeesAFlippedBitInEveryKindOfByte) {
  const std::string path = add();
  const auto file_system = fs::posix_file_system();
  const auto file = file_system->open(path, fs::Access::read);
  const format::ContainerReader reader(*file, file_size(path), path);
  std::vector<std::pair<std::uint64_t, std::string>> places = {
      {0, "superblock"}, {600, "superblock"}, {4095, "superblock"}, {file_size(path) - 1, ""}};
  for (const auto& extent : reader.superblock().extents) {
    places.emplace_back(extent.offset, extent.kind == format::ExtentKind::index ? "index" : "HDF5 metadata");
  }
  for (const auto& region : reader.regions()) {
    if (region.size_bytes > 0) places.emplace_back(region.offset, "region '" + region.spec.name + "'");
  }
  for (const auto& [offset, what] : places) {
    flip_bit(path, offset);
    const Result verified = kedge("verify " + path);
    EXPECT_EQ(verified.status, 1) << offset << " " << verified.text;
    EXPECT_THAT(verified.text, AllOf(StartsWith("DAMAGED"), HasSubstr(what), HasSubstr("0 ok, 1 damaged"))) << offset;
    flip_bit(path, offset);
  }
  EXPECT_EQ(kedge("verify " + path).status, 0);
}

TEST_F(KedgeCommand, VerifySaysWhereTheDamageIs) {
  const std::string path = add();
  const Json region = region_of(kedge_json("show " + path, 0), "field");
  flip_bit(path, region["offset"].get<std::uint64_t>() + 4'500'000);
  const Json verified = kedge_json("verify " + path, 1);
  EXPECT_EQ(verified["exit_status"], 1);
  ASSERT_EQ(verified["files"].size(), 1U);
  const Json& container = verified["files"][0];
  EXPECT_EQ(container["state"], "damaged");
  EXPECT_EQ(container["tag"], "step-000100");
  ASSERT_EQ(container["damages"].size(), 1U);
  EXPECT_EQ(container["damages"][0]["what"], "region 'field'");
  EXPECT_EQ(container["damages"][0]["offset"], region["offset"].get<std::uint64_t>() + (4U << 20U));
}

TEST_F(KedgeCommand, SeesTruncationAndWhatWasAppended) {
  const std::string path = add();
  const std::uint64_t whole = file_size(path);
  for (const std::uint64_t size : {whole + 1, whole - 1, whole / 2, std::uint64_t{4096}, std::uint64_t{4095},
                                   std::uint64_t{100}, std::uint64_t{8}}) {
    truncate(path, size);
    const Result verified = kedge("verify " + path);
    EXPECT_EQ(verified.status, 1) << size << " " << verified.text;
    EXPECT_THAT(verified.text, HasSubstr(size < whole ? "truncated" : "appended")) << size;
    EXPECT_EQ(kedge("show " + path).status, 1) << size;
    add();
  }
}

TEST_F(KedgeCommand, ShowStillShowsTheSuperblockWhenTheRestIsLost) {
  const std::string path = add();
  truncate(path, 4096);
  const Result shown = kedge("show " + path);
  EXPECT_THAT(shown.text, AllOf(HasSubstr("step-000100"), HasSubstr("truncated")));
  EXPECT_EQ(kedge_json("show " + path, 1)["regions"], nullptr);
}

TEST_F(KedgeCommand, VerifiesAllContainersOfAStoreInTheOrderOfRanks) {
  auto identity = sample_identity();
  identity.commit.world_size = 16;
  for (const unsigned rank : {10U, 2U}) {
    identity.logical_rank = LogicalRank{rank};
    store_.add(compose("rank-{}.0.h5", rank), sample_regions(), identity);
  }
  store_.add_file("rank-2.1.h5", 8192, '\0');
  store_.add_file("rank-3.0.h5", 0, '\0');
  store_.add_file("lock.1.0", 10, 'x');
  const Result verified = kedge("verify " + store_.directory());
  EXPECT_EQ(verified.status, 0) << verified.text;
  EXPECT_THAT(verified.text, HasSubstr("2 ok, 0 damaged, 2 being written or free"));
  EXPECT_THAT(verified.text, Not(HasSubstr("lock")));
  EXPECT_LT(verified.text.find("rank-2.0"), verified.text.find("rank-10.0"));
  flip_bit(store_.path("rank-10.0.h5"), 3);  // in the magic: in a store it is damage all the same
  EXPECT_EQ(kedge("verify " + store_.directory()).status, 1);
}

TEST_F(KedgeCommand, SeesAnotherRanksContainerInAStore) {
  add("rank-5.0.h5");
  const Result verified = kedge("verify " + store_.directory());
  EXPECT_EQ(verified.status, 1);
  EXPECT_THAT(verified.text, HasSubstr("the container of rank 2, but its name says rank 5"));
}

TEST_F(KedgeCommand, WhatCannotBeLookedAtIsStatusTwoAndSaysWhatToDo) {
  const std::string text = store_.add_file("notes.txt", 9000, 'x');
  EXPECT_EQ(kedge("verify " + text).status, 2);
  EXPECT_THAT(kedge("verify " + text).text, HasSubstr("not a Kedge container"));
  EXPECT_EQ(kedge("show " + text).status, 2);
  EXPECT_EQ(kedge("verify " + store_.add_file("empty", 0, 'x')).status, 2);
  for (const std::string verb : {"show ", "verify "}) {
    const Result missing = kedge(verb + store_.path("rank-9.0.h5"));
    EXPECT_EQ(missing.status, 2);
    EXPECT_THAT(missing.text, AllOf(HasSubstr("rank-9.0.h5"), HasSubstr("check the path")));
  }
  EXPECT_THAT(kedge("verify " + store_.directory()).text, HasSubstr("no container or checkpoint in this directory"));
  EXPECT_EQ(kedge("verify " + store_.directory()).status, 2);
  EXPECT_THAT(kedge("show " + store_.directory()).text, HasSubstr("a directory without checkpoint.h5, and no store"));
  std::filesystem::create_directory(store_.path("kedge-0-heat"));
  EXPECT_THAT(kedge("verify " + store_.directory()).text, HasSubstr("e.g. kedge-0-heat"));
}

TEST_F(KedgeCommand, UnsealedIsNoDamageButNothingWasChecked) {
  const std::string path = store_.add_file("rank-0.0.h5", 8192, '\0');
  for (const std::string& words : {"verify " + path, "show " + path, "verify " + store_.directory()}) {
    const Result result = kedge(words);
    EXPECT_EQ(result.status, 2) << words;
    EXPECT_THAT(result.text, HasSubstr("being written or free"));
  }
}

TEST_F(KedgeCommand, DamageIsToldBeforeWhatCouldNotBeLookedAt) {
  const std::string path = add();
  EXPECT_EQ(kedge("verify " + path + " " + store_.path("missing")).status, 2);
  flip_bit(path, 70000);
  EXPECT_EQ(kedge("verify " + path + " " + store_.path("missing")).status, 1);
  const Json verified = kedge_json("verify " + store_.path("missing") + " " + path, 1);
  EXPECT_EQ(verified["damaged"], 1);
  EXPECT_EQ(verified["not_checked"], 1);
}

TEST_F(KedgeCommand, RefusesLinksInAStoreAndFollowsThoseNamedByTheUser) {
  const std::string path = add();
  std::filesystem::create_symlink(path, store_.path("rank-3.0.h5"));
  const Result store = kedge("verify " + store_.directory());
  EXPECT_EQ(store.status, 2) << store.text;
  EXPECT_THAT(store.text, HasSubstr("symbolic link"));
  std::filesystem::create_symlink(path, store_.path("mine"));
  EXPECT_EQ(kedge("verify " + store_.path("mine")).status, 0);
}

TEST_F(KedgeCommand, RefusesANewerFormatByName) {
  const std::string path = add();
  format::SuperblockBytes bytes{};
  const auto file_system = fs::posix_file_system();
  const auto file = file_system->open(path, fs::Access::read_write);
  static_cast<void>(file->read_with_crc(0, bytes, 0));
  bytes[format::at::kVersion] = std::byte{99};
  const std::uint32_t crc = file->write_with_crc(0, std::span(bytes).first(format::at::kCrc), 0);
  file->write_with_crc(format::at::kCrc, std::as_bytes(std::span(&crc, 1)), 0);
  for (const std::string verb : {"show ", "verify "}) {
    EXPECT_EQ(kedge(verb + path).status, 2);
    EXPECT_THAT(kedge(verb + path).text, HasSubstr("not a format version"));
  }
}

TEST_F(KedgeCommand, ExplainsWrongUsage) {
  EXPECT_THAT(kedge("--version").text, HasSubstr("kedge " KEDGE_PROJECT_VERSION));
  EXPECT_THAT(kedge("--version").text, HasSubstr(KEDGE_HAS_CUDA ? "GPU memory: yes)" : "GPU memory: no)"));
  EXPECT_EQ(kedge("--version").status, 0);
  EXPECT_THAT(kedge("--help").text, AllOf(HasSubstr("show"), HasSubstr("verify"), HasSubstr("Exit status")));
  EXPECT_EQ(kedge("verify --help").status, 0);
  EXPECT_EQ(kedge("").status, 2);
  EXPECT_EQ(kedge("verify").status, 2);
  EXPECT_THAT(kedge("verfy x").text, HasSubstr("did you mean 'verify'?"));
  EXPECT_EQ(kedge("verfy x").status, 2);
  EXPECT_EQ(kedge("show --jsn x").status, 2);
}

TEST_F(KedgeCommand, SaysWhenItsOutputIsLost) {
  if (::access("/dev/full", W_OK) != 0) GTEST_SKIP() << "no /dev/full here";
  EXPECT_EQ(kedge("show " + add() + " >/dev/full").status, 2);
}

TEST_F(KedgeCommand, DrawsABarOnATerminalOnly) {
  const std::string path = add();
  EXPECT_THAT(kedge("verify " + path).text, Not(HasSubstr("\033")));
}

TEST_F(KedgeCommand, NeedsNeitherMpiNorHdf5) {
  const Result libraries = shell("ldd '" KEDGE_PROGRAM "'");
  if (libraries.status != 0) GTEST_SKIP() << "no ldd here";
  EXPECT_THAT(libraries.text, AllOf(Not(HasSubstr("libmpi")), Not(HasSubstr("libhdf5"))));
}

}  // namespace
}  // namespace kedge::testing::kedge_command_test
