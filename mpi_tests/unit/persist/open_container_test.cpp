// A container counts only if it is the one that the manifest describes: each rule, broken once.
#include "persist/open_container.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <optional>

#include "harness/faulty_fixture.hpp"
#include "unit/persist/support.hpp"

namespace kedge::faults::open_container_test {
namespace {

using persist::ContainerError;
using persist::testing::container_bytes;
using persist::testing::sample_commit;
using persist::testing::SampleCommit;
using Problem = persist::ContainerProblem::Kind;

constexpr LogicalRank kRank{1};

struct Refusal {
  Problem kind;
  ErrorCode code;
  persist::ContainerProblem problem;
};

class OpenContainer : public Faulty {
 protected:
  void SetUp() override {
    Faulty::SetUp();
    disk.make_directories(directory + "/data/0");
    for (std::uint32_t rank = 0; rank < commit.containers.size(); ++rank) {
      disk.write_all(path(rank), commit.containers[rank]);
    }
    disk.write_all(directory + "/checkpoint.h5", commit.manifest);
  }
  [[nodiscard]] std::string path(std::uint32_t rank) const { return directory + "/" + commit.rows[rank].file; }

  /// Nothing: it was opened.
  std::optional<Refusal> refusal(const std::function<void()>& open) {
    try {
      open();
      return std::nullopt;
    } catch (const ContainerError& error) {
      return Refusal{error.problem().kind, error.code(), error.problem()};
    }
  }
  std::optional<Refusal> refusal() {
    return refusal([&] { (void)persist::open_container(*system, {directory}, commit.entry.commit, kRank); });
  }
  std::optional<Refusal> refusal_of_row(const format::ShardRow& row) {
    return refusal([&] {
      (void)persist::open_container(*system, {directory}, persist::manifest_head_of(commit.entry), row, kRank);
    });
  }
  void expect(std::optional<Refusal> refusal, Problem kind, ErrorCode code, const std::string& what) {
    ASSERT_TRUE(refusal) << what;
    EXPECT_EQ(static_cast<int>(refusal->kind), static_cast<int>(kind)) << what;
    EXPECT_EQ(refusal->code, code) << what;
  }

  SampleCommit commit = sample_commit(1);
  std::string directory = "/d/" + commit.entry.directory;
};

TEST_F(OpenContainer, OpensTheOneThatWasCommitted) {
  const auto opened = persist::open_container(*system, {directory}, commit.entry.commit, kRank);
  EXPECT_EQ(opened.row, commit.rows[1]);
  EXPECT_EQ(opened.path, path(1));
  EXPECT_EQ(opened.reader->superblock().logical_rank, kRank);
  EXPECT_TRUE(opened.reader->verify().empty());
  EXPECT_NO_THROW((void)persist::open_container(*system, {directory}, commit.entry.commit.id, kRank));
}

TEST_F(OpenContainer, MessagesNameThePathAsItWasGiven) {
  system->remove(path(1));
  const auto failure = failure_of([&] {
    (void)persist::open_container(*system, {directory, "shown"}, commit.entry.commit, kRank);
  });
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->path, "shown/data/0/rank-1.h5");
}

/// Every field by which the container could belong to something else.
const std::vector<std::pair<std::string, std::function<void(CommitHead&)>>>& changes() {
  static const std::vector<std::pair<std::string, std::function<void(CommitHead&)>>> all = {
      {"run", [](CommitHead& head) { head.run_id.bytes[15] ^= 1; }},
      {"commit", [](CommitHead& head) { head.id.bytes[15] ^= 1; }},
      {"parent", [](CommitHead& head) { head.parent_id.bytes[15] ^= 1; }},
      {"generation", [](CommitHead& head) { ++head.generation; }},
      {"incarnation", [](CommitHead& head) { ++head.incarnation; }},
      {"world size", [](CommitHead& head) { ++head.world_size; }},
      {"time", [](CommitHead& head) { ++head.time_ns; }},
      {"tag", [](CommitHead& head) { head.tag = "stop"; }}};
  return all;
}

TEST_F(OpenContainer, BelongsToJustThisCommit) {
  for (const auto& [what, change] : changes()) {
    CommitHead other = commit.entry.commit;
    change(other);
    disk.write_all(path(1), container_bytes(other, 1));
    const auto found = refusal();
    expect(found, Problem::identity, ErrorCode::corrupt, what);
    if (found) {
      EXPECT_EQ(found->problem.found_superblock.value().commit, other) << what;
    }
  }
}

TEST_F(OpenContainer, BelongsToThisRank) {
  disk.write_all(path(1), commit.containers[0]);
  const auto found = refusal();
  expect(found, Problem::identity, ErrorCode::corrupt, "rank");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->problem.found_superblock.value().logical_rank.value, 0U);
}

TEST_F(OpenContainer, TheManifestIsThatOfJustThisCommit) {
  for (const auto& [what, change] : changes()) {
    CommitHead other = commit.entry.commit;
    change(other);
    const auto failure = failure_of([&] { (void)persist::open_container(*system, {directory}, other, kRank); });
    ASSERT_TRUE(failure) << what;
    EXPECT_EQ(failure->code, ErrorCode::corrupt) << what;
  }
  Id128 id = commit.entry.commit.id;
  id.bytes[0] ^= 1;
  EXPECT_TRUE(failure_of([&] { (void)persist::open_container(*system, {directory}, id, kRank); }));
}

TEST_F(OpenContainer, TheCommitHasThisRank) {
  const auto failure = failure_of([&] {
    (void)persist::open_container(*system, {directory}, commit.entry.commit,
                                  LogicalRank{persist::testing::kSampleRanks});
  });
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->code, ErrorCode::corrupt);
}

TEST_F(OpenContainer, HasTheSizeThatTheManifestSays) {
  persist::testing::Bytes longer = commit.containers[1];
  longer.resize(longer.size() + 4096);
  disk.write_all(path(1), longer);
  auto found = refusal();
  expect(found, Problem::size, ErrorCode::corrupt, "appended");
  if (found) {
    EXPECT_EQ(found->problem.size_bytes, longer.size());
  }
  for (const std::uint64_t size :
       {commit.containers[1].size() - 1, std::uint64_t{4096}, std::uint64_t{100}, std::uint64_t{0}}) {
    disk.write_all(path(1), std::span(commit.containers[1]).first(size));
    found = refusal();
    expect(found, Problem::size, ErrorCode::corrupt, "truncated");
    if (found) {
      EXPECT_EQ(found->problem.size_bytes, size);
    }
  }
}

TEST_F(OpenContainer, HasTheIndexAndTheContentThatTheManifestSays) {
  for (const auto& [what, change] : std::vector<std::pair<std::string, std::function<void(format::ShardRow&)>>>{
           {"index offset", [](format::ShardRow& row) { row.index_offset += 4096; }},
           {"index size", [](format::ShardRow& row) { ++row.index_size; }},
           {"index checksum", [](format::ShardRow& row) { row.index_crc ^= 1; }},
           {"file checksum", [](format::ShardRow& row) { row.crc ^= 1; }}}) {
    format::ShardRow row = commit.rows[1];
    change(row);
    expect(refusal_of_row(row), Problem::content, ErrorCode::corrupt, what);
  }
  EXPECT_FALSE(refusal_of_row(commit.rows[1]));
}

TEST_F(OpenContainer, OpensNoNameButItsOwn) {
  for (const char* name : {"data/0/rank-0.h5", "../secret.h5", "data/0/../rank-1.h5", ""}) {
    format::ShardRow row = commit.rows[1];
    row.file = name;
    expect(refusal_of_row(row), Problem::file_name, ErrorCode::corrupt, name);
  }
}

TEST_F(OpenContainer, IsThere) {
  disk.remove_all(path(1));
  expect(refusal(), Problem::missing, ErrorCode::not_found, "file");
  disk.remove_all(directory + "/data/0");
  auto found = refusal();
  expect(found, Problem::missing_directory, ErrorCode::not_found, "directory");
  if (found) {
    EXPECT_EQ(found->problem.problem_path, "data/0");
  }
  disk.write_all(directory + "/data/0", commit.containers[1]);
  found = refusal();
  expect(found, Problem::not_a_directory, ErrorCode::io, "file in place of a directory");
  if (found) {
    EXPECT_EQ(found->problem.problem_path, "data/0");
  }
}

TEST_F(OpenContainer, FollowsNoLink) {
  const auto before = disk.snapshot();
  for (const std::string_view where : {"data", "data/0"}) {
    disk.restore(before);
    const std::string elsewhere = "/elsewhere";
    disk.make_directories(elsewhere + "/0");
    disk.write_all(elsewhere + "/0/rank-1.h5", commit.containers[1]);
    disk.write_all(elsewhere + "/rank-1.h5", commit.containers[1]);
    disk.remove_all(fs::join(directory, where));
    disk.plant_link(fs::join(directory, where), elsewhere);
    const auto found = refusal();
    expect(found, Problem::link, ErrorCode::io, std::string(where));
    if (found) {
      EXPECT_EQ(found->problem.problem_path, where);
    }
  }
  disk.restore(before);
  disk.write_all("/elsewhere.h5", commit.containers[1]);
  disk.remove_all(path(1));
  disk.plant_link(path(1), "/elsewhere.h5");
  const auto failure = failure_of([&] { (void)refusal(); });
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->code, ErrorCode::io);
}

TEST_F(OpenContainer, IsSealedAndReadable) {
  persist::testing::Bytes bytes = commit.containers[1];
  std::fill_n(bytes.begin(), 4096, std::byte{0});
  disk.write_all(path(1), bytes);
  expect(refusal(), Problem::unsealed, ErrorCode::corrupt, "zeros");
  for (const std::uint64_t offset : {std::uint64_t{0}, std::uint64_t{100}, commit.rows[1].index_offset}) {
    disk.write_all(path(1), commit.containers[1]);
    disk.flip_bit(path(1), offset);
    expect(refusal(), Problem::unreadable, ErrorCode::corrupt, "a bit at " + std::to_string(offset));
  }
}

/// The file may be well: it was not read.
TEST_F(OpenContainer, AReadThatFailsSaysNothingOfTheContainer) {
  int failed = 0;
  for (std::uint64_t n = 1; n <= 20; ++n) {
    disk.fail_read(0, disk.reads(0) + n, EIO);
    const auto failure = failure_of([&] { EXPECT_FALSE(refusal()) << "read " << n; });
    disk.heal(0);
    if (!failure) continue;
    ++failed;
    EXPECT_EQ(failure->code, ErrorCode::io);
  }
  EXPECT_GT(failed, 5);
}

TEST_F(OpenContainer, WithoutAManifestThereIsNone) {
  system->remove(directory + "/checkpoint.h5");
  const auto failure = failure_of([&] { (void)refusal(); });
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->code, ErrorCode::not_found);
}

}  // namespace
}  // namespace kedge::faults::open_container_test
