// kedge verify on checkpoints: whole, cut, flipped, swapped and half-written ones.
#include <filesystem>

#include "base/text.hpp"
#include "command/checkpoints_fixture.hpp"
#include "format/container_reader.hpp"

namespace kedge::testing::kedge_verify_tag_test {
namespace {

using persist::TagEntry;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

TEST_F(KedgeCheckpoints, VerifiesByTagDirectoryAndPrefix) {
  add_three();
  for (const std::string& words :
       {"verify step-000200 --prefix " + prefix_.directory(), "verify " + prefix_.path(sample_entry(2).directory)}) {
    const Result verified = kedge(words);
    EXPECT_EQ(verified.status, 0) << verified.text;
    EXPECT_THAT(verified.text, AllOf(StartsWith("ok "), HasSubstr("step-000200: manifest and 4 containers"),
                                     HasSubstr("5 ok (manifests 1, containers 4), 0 damaged")));
  }
  const Result all = kedge("verify " + prefix_.directory());
  EXPECT_EQ(all.status, 0) << all.text;
  EXPECT_THAT(all.text, HasSubstr("15 ok (manifests 3, containers 12), 0 damaged"));
  EXPECT_LT(all.text.find("step-000300:"), all.text.find("step-000100:"));
  EXPECT_THAT(kedge("verify -q " + prefix_.directory()).text, IsEmpty());
  const Json json = kedge_json("verify step-000200 --prefix " + prefix_.directory(), 0);
  EXPECT_EQ(json["ok_manifests"], 1);
  EXPECT_EQ(json["ok_containers"], 4);
  EXPECT_EQ(json["files"].size(), 5U);
  EXPECT_EQ(json["files"][0]["kind"], "manifest");
}

TEST_F(KedgeCheckpoints, SeesAFlippedBitAnywhereInACheckpoint) {
  const TagEntry entry = sample_entry(1);
  prefix_.add(entry);
  for (const std::string& path : {manifest(entry), prefix_.container(entry, 2)}) {
    for (std::uint64_t at = 0; at < file_size(path); at += 997) {
      flip_bit(path, at);
      const Result verified = kedge("verify " + prefix_.path(entry.directory));
      EXPECT_EQ(verified.status, 1) << path << " " << at << " " << verified.text;
      EXPECT_THAT(verified.text, HasSubstr("DAMAGED  " + path)) << at;
      flip_bit(path, at);
    }
  }
  EXPECT_EQ(kedge("verify " + prefix_.directory()).status, 0);
}

TEST_F(KedgeCheckpoints, NamesTheRegionThatIsDamaged) {
  const TagEntry entry = sample_entry(1);
  prefix_.add(entry);
  const Json shown = kedge_json("show " + prefix_.container(entry, 2), 0);
  flip_bit(prefix_.container(entry, 2), shown["regions"][0]["offset"].get<std::uint64_t>() + 100);
  expect_damaged(entry, "region 'temperature' in bytes");
}

TEST_F(KedgeCheckpoints, NamesWhatIsMissingTruncatedOrAppended) {
  const TagEntry entry = sample_entry(1);
  prefix_.add(entry);
  const std::string path = prefix_.container(entry, 1);
  const std::uint64_t whole = file_size(path);
  for (const std::uint64_t size : {whole - 1, whole / 2, std::uint64_t{4096}, std::uint64_t{4095}, std::uint64_t{0}}) {
    truncate(path, size);
    expect_damaged(entry, compose("truncated: {} of its {} bytes are left", size, whole));
    prefix_.add(entry);
  }
  truncate(path, whole + 5);
  expect_damaged(entry, "5 bytes were appended");
  std::filesystem::remove(path);
  expect_damaged(entry, "missing");
  std::filesystem::remove_all(prefix_.path(entry.directory) + "/data");
  expect_damaged(entry, "missing, and so is its directory");
}

TEST_F(KedgeCheckpoints, NamesContainersOfAnotherRankTagOrRun) {
  add_three();
  const TagEntry entry = sample_entry(2);
  const auto put = [&](const std::string& from) {
    const std::string path = prefix_.container(entry, 1);
    std::filesystem::copy_file(from, path, std::filesystem::copy_options::overwrite_existing);
  };
  put(prefix_.container(entry, 3));
  expect_damaged(entry, "swapped: it is the container of rank 3");
  put(prefix_.container(sample_entry(1), 1));
  expect_damaged(entry, "swapped: it is the container of rank 1 of step-000100 (generation 1, commit");
  SamplePrefix others;
  TagEntry foreign = entry;
  foreign.commit.run_id.bytes.fill(0x55);
  others.add(foreign);
  put(others.container(foreign, 1));
  expect_damaged(entry, "of another run");
}

TEST_F(KedgeCheckpoints, SeesAContainerThatIsWholeButOfAnotherContent) {
  const TagEntry entry = sample_entry(1);
  prefix_.add(entry);
  const std::string path = prefix_.container(entry, 1);
  format::Superblock identity;
  std::vector<format::RegionSpec> regions;
  {
    const auto file = fs::posix_file_system()->open(path, fs::Access::read);
    const format::ContainerReader reader(*file, file_size(path), path);
    identity = reader.superblock();
    for (const auto& region : reader.regions()) regions.push_back(region.spec);
  }
  write_container(path, regions, identity, 1);
  expect_damaged(entry, "not the container that the manifest lists");
}

TEST_F(KedgeCheckpoints, AManifestOfAnotherTagIsDamage) {
  add_three();
  std::filesystem::copy_file(manifest(sample_entry(1)), manifest(sample_entry(2)),
                             std::filesystem::copy_options::overwrite_existing);
  expect_damaged(sample_entry(2), "this is the manifest of " + sample_entry(1).directory);
}

TEST_F(KedgeCheckpoints, FollowsNoLinkInsideOfACheckpoint) {
  const TagEntry entry = sample_entry(1);
  prefix_.add(entry);
  const std::string data = prefix_.path(entry.directory) + "/data";
  std::filesystem::rename(data, prefix_.path("moved"));
  std::filesystem::create_directory_symlink(prefix_.path("moved"), data);
  const Result linked = kedge("verify " + prefix_.path(entry.directory));
  EXPECT_EQ(linked.status, 2) << linked.text;
  EXPECT_THAT(linked.text, HasSubstr("symbolic link"));
}

TEST_F(KedgeCheckpoints, ACheckpointThatIsNotCommittedIsNoDamageButNothingWasChecked) {
  write_containers(prefix_.directory(), sample_entry(4));
  const Result verified = kedge("verify " + prefix_.path(sample_entry(4).directory));
  EXPECT_EQ(verified.status, 2) << verified.text;
  EXPECT_THAT(verified.text, AllOf(HasSubstr("1 not committed"), HasSubstr("nothing was checked")));
  prefix_.add(sample_entry(1));
  EXPECT_EQ(kedge("verify " + prefix_.directory()).status, 0);
}

TEST_F(KedgeCheckpoints, ACopyUnderAnyNameIsVerifiedWhereItLies) {
  const TagEntry entry = sample_entry(1);
  prefix_.add(entry);
  const SampleStore elsewhere;
  std::filesystem::copy(prefix_.path(entry.directory), elsewhere.path("my-copy"),
                        std::filesystem::copy_options::recursive);
  EXPECT_EQ(kedge("verify " + elsewhere.path("my-copy")).status, 0);
  EXPECT_EQ(kedge_in(elsewhere.directory(), "verify my-copy").status, 0);
  EXPECT_EQ(kedge("show " + elsewhere.path("my-copy")).status, 0);
}

}  // namespace
}  // namespace kedge::testing::kedge_verify_tag_test
