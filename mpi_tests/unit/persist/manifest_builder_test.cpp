// The manifest of ranks that have nothing but their containers: no engine, no store, no prefix.
#include "persist/manifest_builder.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <utility>

#include "harness/testing_world.hpp"
#include "unit/persist/support.hpp"

namespace kedge::persist::manifest_builder_test {
namespace {

using testing::Bytes;
using testing::container_bytes;
using testing::sample_head;

constexpr std::uint32_t kRanks = 3;

struct Opened {
  explicit Opened(Bytes bytes) : file(std::move(bytes)), reader(file, file.size(), "container") {}
  format::testing::MemoryFile file;
  format::ContainerReader reader;
};

class Builders {
 public:
  /// On every rank: the step's third argument counts this rank's messages since the last count.
  using Step = std::function<void(const comm::Group&, ManifestBuilder&, const std::function<std::uint64_t()>&)>;

  explicit Builders(std::uint64_t view_limit = 100) : view_limit_(view_limit) {}

  void run(const Step& step) const {
    kedge::testing::InProcessWorld world(static_cast<int>(kRanks));
    const auto outcomes = world.run_connected([&](Communicator& communicator) {
      Options::Log quiet;
      quiet.level = LogLevel::error;
      ManifestBuilder builder("heat", view_limit_, Log(quiet));
      std::uint64_t counted = 0;
      step(comm::Group(communicator, comm::Group::Seconds(3600)), builder, [&] {
        const std::uint64_t before = std::exchange(counted, world.events(communicator.rank()));
        return counted - before;
      });
    });
    for (const auto& outcome : outcomes) {
      EXPECT_TRUE(outcome.returned()) << (outcome.failure ? outcome.failure->message : "");
    }
  }

 private:
  std::uint64_t view_limit_;
};

std::uint32_t rank_of(const comm::Group& group) { return static_cast<std::uint32_t>(group.rank()); }

TEST(ManifestBuilder, TellsOfEveryContainer) {
  Builders().run([](const comm::Group& group, ManifestBuilder& builder, const auto&) {
    const CommitHead head = sample_head(4, kRanks);
    const Bytes bytes = container_bytes(head, rank_of(group), 1000 + 5000 * rank_of(group));
    const Opened mine(bytes);
    const Manifest manifest = builder.build(group, mine.reader);
    EXPECT_EQ(manifest.entry.commit, head);
    EXPECT_EQ(manifest.entry.run, "heat");
    EXPECT_EQ(manifest.entry.directory, tag_directory_name(head));
    EXPECT_EQ(manifest.entry.total_bytes, group.sum(bytes.size()));
    EXPECT_EQ(manifest.bytes.empty(), !group.is_root());
    if (!group.is_root()) return;
    format::testing::MemoryFile file(manifest.bytes);
    const format::ManifestReader reader(file, file.size(), "manifest");
    EXPECT_TRUE(reader.verify().empty());
    EXPECT_EQ(reader.head().commit, head);
    EXPECT_TRUE(reader.head().has_view);
    for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
      EXPECT_EQ(reader.row({rank}), testing::row_of(container_bytes(head, rank, 1000 + 5000 * rank), rank));
    }
  });
}

TEST(ManifestBuilder, MakesTheLayoutAnewOnlyWhenAStructureChanges) {
  Builders().run([](const comm::Group& group, ManifestBuilder& builder, const auto& messages) {
    const auto build = [&](std::uint64_t generation, std::uint64_t row) {
      const Opened mine(container_bytes(sample_head(generation, kRanks), rank_of(group), 1000, row));
      (void)messages();
      const Manifest manifest = builder.build(group, mine.reader);
      EXPECT_EQ(manifest.entry.commit.generation, generation);
      return messages();
    };
    const std::uint32_t rank = rank_of(group);
    const std::uint64_t first = build(1, rank);
    const std::uint64_t second = build(2, rank);
    EXPECT_LT(second, first);
    EXPECT_EQ(build(3, rank), second);
    const std::uint64_t exchanged = rank == 2 ? rank : 1 - rank;  // ranks 0 and 1 take each other's row
    EXPECT_GT(build(4, exchanged), second);
    EXPECT_EQ(build(5, exchanged), second);
  });
}

TEST(ManifestBuilder, AnOverlapFailsOnEveryRankAndTheNextBuildIsWhole) {
  Builders().run([](const comm::Group& group, ManifestBuilder& builder, const auto&) {
    const CommitHead head = sample_head(4, kRanks);
    const Opened overlapping(container_bytes(head, rank_of(group), 1000, 0));
    try {
      (void)builder.build(group, overlapping.reader);
      ADD_FAILURE() << "an overlap was taken";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::mismatch);
    }
    const Opened mine(container_bytes(head, rank_of(group)));
    const Manifest manifest = builder.build(group, mine.reader);
    EXPECT_EQ(manifest.bytes.empty(), !group.is_root());
  });
}

TEST(ManifestBuilder, HasNoViewBeyondTheLimit) {
  Builders(kRanks - 1).run([](const comm::Group& group, ManifestBuilder& builder, const auto&) {
    const Opened mine(container_bytes(sample_head(4, kRanks), rank_of(group)));
    const Manifest manifest = builder.build(group, mine.reader);
    if (!group.is_root()) return;
    format::testing::MemoryFile file(manifest.bytes);
    EXPECT_FALSE(format::ManifestReader(file, file.size(), "manifest").head().has_view);
  });
}

/// Ranks need not be those of the containers: rows go by whose container it is.
TEST(ManifestBuilder, RowsGoByLogicalRank) {
  Builders().run([](const comm::Group& group, ManifestBuilder& builder, const auto&) {
    const CommitHead head = sample_head(4, kRanks);
    const std::uint32_t logical = (rank_of(group) + 1) % kRanks;
    const Opened mine(container_bytes(head, logical, 1000 + 5000 * logical));
    const Manifest manifest = builder.build(group, mine.reader);
    if (!group.is_root()) return;
    format::testing::MemoryFile file(manifest.bytes);
    const format::ManifestReader reader(file, file.size(), "manifest");
    for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
      EXPECT_EQ(reader.row({rank}), testing::row_of(container_bytes(head, rank, 1000 + 5000 * rank), rank));
    }
  });
}

TEST(ManifestBuilder, ARowThatIsThereTwiceIsNoManifest) {
  kedge::testing::InProcessWorld world(2);
  const auto outcomes = world.run_connected([&](Communicator& communicator) {
    Options::Log quiet;
    quiet.level = LogLevel::error;
    ManifestBuilder builder("heat", 0, Log(quiet));
    const auto row = static_cast<std::uint64_t>(communicator.rank());
    const Opened mine(container_bytes(sample_head(4, 2), 1, 1000, row));
    (void)builder.build(comm::Group(communicator, std::chrono::seconds(60)), mine.reader);
  });
  for (const auto& outcome : outcomes) {
    ASSERT_TRUE(outcome.failure);
    EXPECT_THAT(outcome.failure->message, ::testing::HasSubstr("every logical rank has one row in a manifest"));
  }
}

}  // namespace
}  // namespace kedge::persist::manifest_builder_test
