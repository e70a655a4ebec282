// Which way large writes go (store.io): by the options, and where they leave it open by what rank 0 measures.
#include "engine/store_io.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "harness/forwarding_file_system.hpp"
#include "harness/several_starts.hpp"

namespace kedge::faults {
namespace {

/// A file that can be written directly, as it says.
class DirectFile final : public fs::File {
 public:
  DirectFile(std::unique_ptr<fs::File> inner, int& direct) : inner_(std::move(inner)), direct_(direct) {}
  bool write_directly() override {
    ++direct_;
    return true;
  }
  std::uint32_t copy_in(std::uint64_t offset, std::span<const std::byte> bytes, std::uint32_t crc) override {
    return inner_->copy_in(offset, bytes, crc);
  }
  std::uint32_t copy_out(std::uint64_t offset, std::span<std::byte> bytes, std::uint32_t crc) override {
    return inner_->copy_out(offset, bytes, crc);
  }
  std::uint32_t checksum(std::uint64_t offset, std::uint64_t length, std::uint32_t crc) override {
    return inner_->checksum(offset, length, crc);
  }
  [[nodiscard]] const std::string& path() const noexcept override { return inner_->path(); }
  [[nodiscard]] fs::FileStatus status() override { return inner_->status(); }
  std::uint64_t reserve(std::uint64_t size_bytes) override { return inner_->reserve(size_bytes); }
  void truncate(std::uint64_t size_bytes) override { inner_->truncate(size_bytes); }
  void sync() override { inner_->sync(); }
  [[nodiscard]] std::unique_ptr<fs::Mapping> map(std::uint64_t size_bytes) override { return inner_->map(size_bytes); }

 private:
  std::unique_ptr<fs::File> inner_;
  int& direct_;
};

/// Measures what it is told.
class Probed final : public ForwardingFileSystem {
 public:
  Probed(std::shared_ptr<fs::FileSystem> inner, fs::WriteProbe probe)
      : ForwardingFileSystem(std::move(inner)), probe_(std::move(probe)) {}
  int probes = 0;
  int direct = 0;  ///< files that were asked to write directly

  [[nodiscard]] fs::WriteProbe probe_writes(const fs::ProbePlace& place) override {
    ++probes;
    if (probe_.refusal == "throw") throw Error(Failure{ErrorCode::io, "the device is gone", -1, place.directory, 0});
    return probe_;
  }
  [[nodiscard]] std::unique_ptr<fs::File> open(const std::string& path, fs::Access access) override {
    return wrapped(inner().open(path, access));
  }
  [[nodiscard]] std::unique_ptr<fs::File> create(const std::string& path, std::uint32_t mode) override {
    return wrapped(inner().create(path, mode));
  }

 private:
  [[nodiscard]] std::unique_ptr<fs::File> wrapped(std::unique_ptr<fs::File> file) {
    if (!file) return nullptr;
    return std::make_unique<DirectFile>(std::move(file), direct);
  }

  fs::WriteProbe probe_;
};

const fs::WriteProbe kDirectIsFaster{1e9, 2e9, ""};
const fs::WriteProbe kNoGain{1e9, 1.05e9, ""};
const fs::WriteProbe kSlower{1e9, 5e8, ""};
const fs::WriteProbe kRefused{0, 0, "not supported"};
const fs::WriteProbe kFails{0, 0, "throw"};

struct Chosen {
  bool direct = false;  ///< the same on every rank
  int probes = 0;       ///< of all ranks
  std::string log;
};

/// Rank 0 measures `probe`, the other the opposite.
Chosen choose(Io io, bool durable, bool memory_backed, const fs::WriteProbe& probe) {
  FaultyDisk disk(SimulatedJob::block_disk());
  disk.make_directories("/store");
  Options::Store options;
  options.io = io;
  options.durable = durable;
  Options::Log log_options;
  Chosen chosen;
  log_options.sink = [&](LogLevel, std::string_view line) { chosen.log += line; };
  const Log log(log_options);
  std::vector<std::shared_ptr<Probed>> systems;
  for (int rank = 0; rank < 2; ++rank) {
    const bool is_faster = probe.direct_bytes_per_s > probe.buffered_bytes_per_s;
    systems.push_back(std::make_shared<Probed>(disk.view(rank), rank == 0   ? probe
                                                                : is_faster ? kRefused
                                                                            : kDirectIsFaster));
  }
  testing::InProcessWorld world(2);
  expect_all_returned(world.run_connected([&](Communicator& communicator) {
    const auto rank = static_cast<std::size_t>(communicator.rank());
    const LogicalRank mine{static_cast<std::uint32_t>(rank)};
    store::NodeStore store(systems[rank], options, {"/store", memory_backed}, mine);
    engine::choose_store_io(comm::Group(communicator, std::chrono::hours(1)), *systems[rank], options, store, log);
    store.discard(store.begin(store::FileKind::container, 0));
  }));
  chosen.direct = systems[0]->direct != 0;
  chosen.probes = systems[0]->probes + systems[1]->probes;
  EXPECT_EQ(systems[1]->direct != 0, chosen.direct);
  return chosen;
}

TEST(StoreIo, AutomaticIsDirectWhereDataIsSyncedToADeviceAndThatIsFaster) {
  EXPECT_TRUE(choose(Io::automatic, true, false, kDirectIsFaster).direct);
  for (const fs::WriteProbe& probe : {kNoGain, kSlower, kRefused, kFails}) {
    const Chosen chosen = choose(Io::automatic, true, false, probe);
    EXPECT_FALSE(chosen.direct);
    EXPECT_EQ(chosen.probes, 1);
    EXPECT_NE(chosen.log.find("large writes go through the page cache"), std::string::npos) << chosen.log;
  }
}

TEST(StoreIo, NothingIsMeasuredWhereTheAnswerIsKnown) {
  for (const Chosen& chosen :
       {choose(Io::automatic, false, false, kDirectIsFaster), choose(Io::automatic, true, true, kDirectIsFaster),
        choose(Io::direct, true, true, kDirectIsFaster), choose(Io::buffered, true, false, kDirectIsFaster)}) {
    EXPECT_FALSE(chosen.direct);
    EXPECT_EQ(chosen.probes, 0);
  }
}

TEST(StoreIo, DirectIsDirectWhereThatIsPossible) {
  for (const bool durable : {false, true}) {
    EXPECT_TRUE(choose(Io::direct, durable, false, kSlower).direct);
    const Chosen refused = choose(Io::direct, durable, false, kRefused);
    EXPECT_FALSE(refused.direct);
    EXPECT_NE(refused.log.find("direct writes are unavailable: not supported"), std::string::npos) << refused.log;
  }
}

}  // namespace
}  // namespace kedge::faults
