// Stores with sealed containers, a prefix and the run's record, for ranks that are threads: what recovery looks at.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "format/container_writer.hpp"
#include "harness/simulated_job.hpp"
#include "harness/testing_world.hpp"
#include "recovery/recovery.hpp"
#include "unit/persist/support.hpp"

namespace kedge::recovery {

/// A place with commits that says what the test wants.
class FakeTier final : public persist::PrefixReader {
 public:
  struct Published {
    persist::TagEntry entry;
    std::string problem = {};  ///< what read says of it; empty: it is good
    bool of_another_user = false;
    bool is_trusted = true;
    std::optional<Id128> id_in_manifest = std::nullopt;           ///< if the list is wrong about it
    std::optional<Id128> run_in_manifest = std::nullopt;          ///< likewise
    std::optional<std::int64_t> time_in_manifest = std::nullopt;  ///< likewise
  };

  std::vector<Published> published;  ///< newest first
  std::vector<persist::UnusableTag> unusable;
  bool unreachable = false;
  bool sees_manifests = true;
  int opens = 0;
  std::map<std::uint32_t, std::vector<std::byte>> containers;  ///< what is fetched, by logical rank

  [[nodiscard]] const std::string& location() const noexcept override { return where_; }
  [[nodiscard]] persist::TagList list_commits() override {
    if (unreachable) throw Error(Failure{ErrorCode::io, "stale file handle", -1, where_, 0});
    persist::TagList list{{}, unusable};
    for (const Published& one : published) list.entries.push_back(one.entry);
    return list;
  }
  [[nodiscard]] persist::TagEntry read_commit(const std::string& name) override {
    const Published& one = find(name);
    if (!one.problem.empty()) throw Error(Failure{ErrorCode::corrupt, one.problem, -1, name, 0});
    persist::TagEntry entry = one.entry;
    entry.commit.id = one.id_in_manifest.value_or(entry.commit.id);
    entry.commit.run_id = one.run_in_manifest.value_or(entry.commit.run_id);
    entry.commit.time_ns = one.time_in_manifest.value_or(entry.commit.time_ns);
    return entry;
  }
  [[nodiscard]] bool is_published(const std::string& /*name*/) override { return sees_manifests; }
  [[nodiscard]] bool is_own(const persist::TagEntry& entry) override { return !find(entry.directory).of_another_user; }
  void require_trusted(const persist::TagEntry& entry) override {
    if (!find(entry.directory).is_trusted) throw Error(Failure{ErrorCode::io, "it is not trusted", -1, where_, 0});
  }
  /// Whatever is looked for; every container that is not in `containers` is damaged.
  [[nodiscard]] persist::OpenedContainer open_container(const std::string& name, const CommitHead& /*commit*/,
                                                        LogicalRank logical_rank) override {
    ++opens;
    if (const auto found = containers.find(logical_rank.value); found != containers.end()) {
      return {persist::testing::row_of(found->second, logical_rank.value), name,
              std::make_unique<format::testing::MemoryFile>(found->second), nullptr};
    }
    throw Error(Failure{ErrorCode::corrupt, "bits are flipped", -1, name, 0});
  }

 private:
  [[nodiscard]] const Published& find(const std::string& name) const {
    return *std::ranges::find_if(published, [&](const Published& one) { return one.entry.directory == name; });
  }

  std::string where_ = "/prefix";
};

[[nodiscard]] inline Id128 id_of(std::uint8_t number) {
  Id128 id;
  id.bytes[15] = number;
  return id;
}

/// One rank of the job.
struct RankOfJob {
  comm::Group group;
  FakeTier& prefix_storage;
  commits::Ledger& ledger;
  store::NodeStore& store;
  Storage storage;
  commits::RunIdentity run;
  Log log;

  [[nodiscard]] bool is_root() const { return group.is_root(); }
};

class RecoveryTest : public testing::Test {
 protected:
  static constexpr int kRanks = 2;

  void SetUp() override { disk.make_directories("/prefix"); }

  /// Of this run, unless `run_id` is another.
  [[nodiscard]] CommitHead commit(std::uint8_t number, std::uint64_t generation, Tag tag,
                                  std::uint32_t world_size = kRanks) const {
    return {run.id, id_of(number), id_of(200), generation, 1, world_size, 1000, std::move(tag)};
  }
  /// A sealed container of it in the store of each of these ranks.
  void put(const CommitHead& head, const std::vector<int>& ranks = {0, 1}) {
    for (const int rank : ranks) put_on(rank, head);
  }
  /// The path of the container that put() made.
  [[nodiscard]] const std::string& path_of(int rank, std::uint8_t number) const {
    return paths_.at({rank, id_of(number)});
  }
  void damage(int rank, std::uint8_t number) { disk.flip_bit(path_of(rank, number), 200'000); }

  /// It is on the prefix.
  FakeTier::Published& publish(const CommitHead& head) {
    const std::string name = head.tag + "." + std::to_string(head.generation);
    for (FakeTier& prefix_storage : tiers) {
      const auto older = [&](const FakeTier::Published& other) { return is_newer(head, other.entry.commit); };
      prefix_storage.published.insert(std::ranges::find_if(prefix_storage.published, older),
                                      {persist::TagEntry{name, head, "run", 77, false}});
    }
    return *std::ranges::find_if(tiers[0].published,
                                 [&](const FakeTier::Published& one) { return one.entry.directory == name; });
  }
  void discard(const CommitHead& head) { persist::PrefixMarkers(start()).mark_discarded(head.id); }
  [[nodiscard]] bool is_discarded(const CommitHead& head) {
    return persist::PrefixMarkers(start()).is_discarded(head.id);
  }

  /// Every rank runs the body; the outcomes.
  std::vector<testing::RankOutcome> run_ranks(const std::function<void(RankOfJob&)>& body) {
    testing::InProcessWorld world(kRanks);
    return world.run_connected([&](Communicator& communicator) {
      const int rank = communicator.rank();
      const auto me = static_cast<std::size_t>(rank);
      const auto store = open_store(rank);
      std::optional<persist::RunStart> mine;
      if (rank == 0) mine.emplace(start());
      std::optional<persist::PrefixMarkers> markers;
      if (mine) markers.emplace(*mine);
      if (on_records_opened && rank == 0) on_records_opened();
      Options::Log options;
      options.sink = [this](LogLevel, std::string_view line) {
        const std::lock_guard guard(mutex_);
        lines_.emplace_back(line);
      };
      RankOfJob scope{comm::Group(communicator, std::chrono::seconds(60)),
                      tiers[me],
                      ledgers[me],
                      *store,
                      Storage{run, *store, tiers[me], ledgers[me], trust, markers ? &*markers : nullptr, other_ranks},
                      run,
                      Log(options)};
      body(scope);
    });
  }
  /// Runs the body on all ranks, which must all return.
  void run_well(const std::function<void(RankOfJob&)>& body) {
    for (const auto& outcome : run_ranks(body)) {
      EXPECT_TRUE(outcome.returned()) << (outcome.failure ? to_string(*outcome.failure) : "");
    }
  }

  [[nodiscard]] bool logged(std::string_view part) const {
    return std::ranges::any_of(lines_, [&](const std::string& line) { return line.find(part) != std::string::npos; });
  }
  [[nodiscard]] const std::vector<std::string>& lines() const { return lines_; }

  faults::FaultyDisk disk{faults::SimulatedJob::memory_disk()};
  std::vector<FakeTier> tiers = std::vector<FakeTier>(kRanks);  // by rank
  std::vector<commits::Ledger> ledgers = std::vector<commits::Ledger>(kRanks);
  commits::RunIdentity run{"run", id_of(99), 1};
  Trust trust = Trust::self;
  OtherRanks other_ranks = OtherRanks::accept;
  std::function<void()> on_records_opened;

 private:
  [[nodiscard]] std::unique_ptr<store::NodeStore> open_store(int rank) {
    const std::string directory = "/store-" + std::to_string(rank);
    disk.make_directories(directory);
    return std::make_unique<store::NodeStore>(disk.view(rank), Options::Store{}, store::StoreLocation{directory, true},
                                              LogicalRank{static_cast<std::uint32_t>(rank)}, std::vector{rank});
  }
  [[nodiscard]] persist::RunStart start() { return persist::RunStart({disk.view(0), "/prefix", run.name}); }
  /// Made elsewhere: a store would take the file of what it does not need.
  void put_on(int rank, const CommitHead& head) {
    const LogicalRank logical_rank{static_cast<std::uint32_t>(rank)};
    disk.remove_all("/made");
    disk.make_directories("/made");
    store::NodeStore store(disk.view(rank), {}, {"/made", true}, logical_rank);
    store::StoreFile& file = store.new_files.begin_file({store::FileKind::container, 0});
    format::ContainerWriter writer(file, nullptr);
    const std::vector<std::byte> values(400'000, std::byte{1});
    writer.add({"values", DataType::opaque, Shape{values.size()}, {}, false}, values);
    (void)writer.finish();
    format::Superblock superblock;
    superblock.commit = head;
    superblock.logical_rank = logical_rank;
    writer.seal(superblock);
    file.flush(false);
    const std::string directory = "/store-" + std::to_string(rank);
    disk.make_directories(directory);
    auto [path, is_new] = paths_.try_emplace({rank, head.id});
    if (is_new) {
      path->second = fs::join(directory, to_string(store::FileName{store::FileKind::container, logical_rank, made_++}));
    }
    disk.write_all(path->second, disk.read_all(file.path()));
  }

  mutable std::mutex mutex_;
  std::vector<std::string> lines_;
  std::map<std::pair<int, Id128>, std::string> paths_;
  std::uint32_t made_ = 0;
};

}  // namespace kedge::recovery
