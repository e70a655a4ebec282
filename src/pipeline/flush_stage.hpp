// Local to persistent: a commit moves from the node-local stores to the prefix, all of it or nothing that counts.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "commits/ledger.hpp"
#include "commits/run_identity.hpp"
#include "format/container_reader.hpp"
#include "kedge/options.hpp"
#include "persist/manifest_builder.hpp"
#include "persist/prefix_retention.hpp"
#include "persist/prefix_storage.hpp"
#include "persist/run_records.hpp"
#include "pipeline/removal.hpp"
#include "pipeline/stage.hpp"
#include "store/node_store.hpp"

namespace kedge::pipeline {

struct FlushSettings {
  commits::RunIdentity run;
  Options::Persistent persistent;
  /// Keeps a copy of the manifest; in another failure domain than rank 0. The same on every rank.
  std::optional<int> second_root;
  bool durable = false;  ///< whether the stores bring what they hold to stable storage
  bool pauses = false;   ///< whether there is something to call between the pieces that are written
  std::function<void()> between_pieces = [] {};
  std::function<bool()> is_ended = [] { return false; };  ///< whether the limit of bandwidth holds no more
  Io io = Io::automatic;                                  ///< how containers are written
  std::uint64_t view_shards_max = persist::kViewShardsMax;
};

class FlushStage final : public Stage {
 public:
  /// `records` are rank 0's, null elsewhere.
  FlushStage(store::NodeStore& store, commits::Ledger& ledger, persist::PrefixStorage& prefix_storage,
             persist::RunRecords* records, FlushSettings settings, Clock& clock, const Log& log)
      : store_(store),
        ledger_(ledger),
        prefix_storage_(prefix_storage),
        records_(records),
        builder_(settings.run.name, settings.view_shards_max, log),
        settings_(std::move(settings)),
        clock_(clock),
        log_(log),
        removal_(prefix_storage, clock, log) {
    const auto limit = static_cast<double>(settings_.persistent.bandwidth_limit);
    const auto sharers = static_cast<double>(std::max<std::size_t>(store.ranks_on_node().size(), 1));
    const double rate = limit > 0 ? limit / sharers : std::numeric_limits<double>::infinity();
    if (limit > 0 || settings_.pauses) pace_.emplace(clock, rate, settings_.between_pieces, settings_.is_ended);
  }

  [[nodiscard]] std::string_view name() const noexcept override { return "flush"; }
  [[nodiscard]] Level reaches() const noexcept override { return Level::persistent; }
  [[nodiscard]] ForOutputs for_outputs() const noexcept override { return ForOutputs::always; }
  /// What may pass: a full filesystem, an error of a server.
  [[nodiscard]] std::uint64_t retries(const Failure& failure) const override;
  [[nodiscard]] std::string warning(const CommitHead& commit, const Failure& failure,
                                    std::uint64_t tries) const override;
  /// COLLECTIVE. Makes the manifest, with HDF5 if the structure is new.
  [[nodiscard]] std::optional<Failure> prepare(const comm::Group& group, CommitFiles& files) override;
  [[nodiscard]] bool needs_application(const comm::Group& group, std::span<const format::StoredRegion> regions,
                                       const Attributes& attributes) const override {
    return !builder_.knows(group, regions, attributes);
  }
  /// COLLECTIVE. As Stage::run. A failure `busy` says that a later start of the run has begun: this engine must end.
  [[nodiscard]] std::optional<Failure> run(const comm::Group& group, const CommitFiles& files) override;
  /// COLLECTIVE. Removes commits that persistent.keep lets go after the last flush; that they could not be is logged
  /// only. Likewise.
  [[nodiscard]] std::optional<Failure> tidy(const comm::Group& group) override;

 private:
  /// What is to be published, on this rank.
  struct Upload {
    const CommitFiles& files;
    const persist::Manifest& manifest;
    const format::ContainerReader& container;
    std::uint32_t crc = 0;      ///< of the container
    persist::PlainFiles plain;  ///< of all ranks
  };

  void flush(const comm::Group& group, const CommitFiles& files);
  [[nodiscard]] bool is_worth_measuring(std::uint64_t total_bytes) const;
  void choose_io(const comm::Group& group);
  [[nodiscard]] comm::Group patient(const comm::Group& group, std::uint64_t total_bytes, std::uint64_t own_bytes) const;
  void sweep(const comm::Group& group);
  void keep_copies(const comm::Group& group, const persist::Manifest& manifest) const;
  [[nodiscard]] persist::PlainFiles plain_files(const format::ContainerReader& container) const;
  void publish(const comm::Group& group, const Upload& upload);
  void publish_in_room(const comm::Group& group, const Upload& upload);
  [[nodiscard]] bool make_room(const comm::Group& group, const Upload& upload, std::uint64_t keep);
  [[nodiscard]] bool is_enough(const comm::Group& group, const Upload& upload,
                               const persist::PrefixRetention& retention);
  void discard(const comm::Group& group, const persist::TagEntry& entry) const;
  void put(LogicalRank logical_rank, const Upload& upload);
  /// What a piece of a flush's removals came to.
  struct Piece {
    std::size_t retracted = 0;
    std::size_t left = 0;  ///< that may go, too; 0 everywhere if there was time for all
    std::optional<Failure> failure;
  };
  void tidy_prefix(const comm::Group& group, const Id128& flushed);
  [[nodiscard]] Piece retract_old_commits(const comm::Group& group, const persist::PrefixRetention& retention);
  [[nodiscard]] const std::vector<persist::TagEntry>& history();

  store::NodeStore& store_;
  commits::Ledger& ledger_;
  persist::PrefixStorage& prefix_storage_;
  persist::RunRecords* records_;
  persist::ManifestBuilder builder_;  ///< used by no two threads at once: see Waits::wait_until_sealed
  FlushSettings settings_;
  Clock& clock_;
  Log log_;
  persist::PrefixCommitList history_;  ///< rank 0's
  std::uint64_t history_as_of_ = 0;    ///< the ledger's changes of what lies there that it knows
  Removal removal_;
  std::optional<fs::RateLimiter> pace_;  ///< none: nothing holds writes up
  bool io_is_chosen_ = false;
  bool said_slow_ = false;
  bool must_sweep_ = true;         ///< the same on every rank: something may lie half published or half removed
  std::optional<Id128> untidied_;  ///< the last commit that was flushed, until tidy()
};

}  // namespace kedge::pipeline
