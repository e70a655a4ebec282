// The stage from local to persistent: copies a commit from the node-local stores to the prefix, as a whole or not at
// all.
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
#include "persist/prefix_markers.hpp"
#include "persist/prefix_retention.hpp"
#include "persist/prefix_storage.hpp"
#include "pipeline/commit_removal.hpp"
#include "pipeline/stage.hpp"
#include "store/node_store.hpp"

namespace kedge::pipeline {

struct FlushSettings {
  commits::RunIdentity run;
  Options::Persistent persistent;
  /// A rank in another failure domain than rank 0, which keeps a copy of the manifest. Equal on every rank.
  std::optional<int> second_root;
  bool durable = false;               ///< stores sync files to stable storage
  bool calls_between_pieces = false;  ///< call back between written pieces
  std::function<void()> between_pieces = [] {};
  std::function<bool()> is_ended = [] { return false; };  ///< lifts the bandwidth limit
  Io io = Io::automatic;                                  ///< how containers are written
  std::uint64_t view_shards_max = persist::kViewShardsMax;
};

/// From where to where a flush goes, and who knows of it.
struct FlushStorage {
  store::NodeStore& store;
  commits::Ledger& ledger;
  const persist::PrefixStorage& prefix;
  const persist::PrefixMarkers* markers = nullptr;  ///< rank 0's, null elsewhere
};

class FlushStage final : public Stage {
 public:
  FlushStage(const FlushStorage& storage, FlushSettings settings, Clock& clock, const Log& log)
      : store_(storage.store),
        ledger_(storage.ledger),
        prefix_(storage.prefix),
        markers_(storage.markers),
        builder_(settings.run.name, settings.view_shards_max, log),
        settings_(std::move(settings)),
        clock_(clock),
        log_(log),
        removal_(*prefix_.remover, clock, log) {
    const auto limit = static_cast<double>(settings_.persistent.bandwidth_limit);
    const auto sharers = static_cast<double>(std::max<std::size_t>(store_.ranks.ranks_on_node().size(), 1));
    const double rate = limit > 0 ? limit / sharers : std::numeric_limits<double>::infinity();
    if (limit > 0 || settings_.calls_between_pieces)
      pace_.emplace(clock, rate, settings_.between_pieces, settings_.is_ended);
  }

  [[nodiscard]] std::string_view name() const noexcept override { return "flush"; }
  [[nodiscard]] Level level() const noexcept override { return Level::persistent; }
  [[nodiscard]] ForOutputs for_outputs() const noexcept override { return ForOutputs::always; }
  /// Failures that may pass are retried: a full filesystem, a server's error.
  [[nodiscard]] std::uint64_t retries_max(const Failure& failure) const override;
  [[nodiscard]] std::string failure_warning(const CommitHead& commit, const Failure& failure,
                                            std::uint64_t tries) const override;
  /// COLLECTIVE. Makes the manifest; uses HDF5 if the structure is new.
  [[nodiscard]] std::optional<Failure> prepare(const comm::Group& group, CommitFiles& files) override;
  [[nodiscard]] bool needs_application(const comm::Group& group, std::span<const format::StoredRegion> regions,
                                       const Attributes& attributes) const override {
    return !builder_.has_layout_for(group, regions, attributes);
  }
  /// COLLECTIVE. See Stage::run. A `busy` failure means that a later start of the run has begun: this engine must end.
  [[nodiscard]] std::optional<Failure> run(const comm::Group& group, const CommitFiles& files) override;
  /// COLLECTIVE. Removes commits that persistent.keep no longer keeps. Failures are only logged.
  [[nodiscard]] std::optional<Failure> clean_up(const comm::Group& group) override;

 private:
  /// This rank's part of a flush.
  struct Upload {
    const CommitFiles& files;
    const persist::Manifest& manifest;
    const format::ContainerReader& container;
    std::uint32_t crc = 0;           ///< CRC32C of the container
    persist::PlainFileTotals plain;  ///< totals of all ranks
  };

  void flush_commit(const comm::Group& group, const CommitFiles& files);
  [[nodiscard]] bool is_worth_measuring(std::uint64_t total_bytes) const;
  void choose_io(const comm::Group& group);
  [[nodiscard]] comm::Group with_flush_timeout(const comm::Group& group, std::uint64_t total_bytes,
                                               std::uint64_t own_bytes) const;
  void remove_leftovers(const comm::Group& group);
  void copy_manifest(const comm::Group& group, const persist::Manifest& manifest) const;
  [[nodiscard]] persist::PlainFileTotals plain_files(const format::ContainerReader& container) const;
  void publish(const comm::Group& group, const Upload& upload);
  // In flush_space.cpp:
  void publish_with_space(const comm::Group& group, const Upload& upload);
  [[nodiscard]] bool free_prefix_space(const comm::Group& group, const Upload& upload, std::uint64_t prefix_keep);
  [[nodiscard]] bool would_free_enough(const comm::Group& group, const Upload& upload,
                                       const persist::PrefixRetention& retention);
  void discard(const comm::Group& group, const persist::TagEntry& entry) const;
  void put_container(LogicalRank logical_rank, const Upload& upload);
  /// Result of a piece of removals.
  struct RemovalResult {
    std::size_t retracted_count = 0;
    std::size_t remaining_count = 0;  ///< further removable commits; 0 everywhere if all are gone
    std::optional<Failure> failure;
  };
  void remove_old_commits(const comm::Group& group, const Id128& flushed);
  [[nodiscard]] RemovalResult retract_some_commits(const comm::Group& group, const persist::PrefixRetention& retention);
  [[nodiscard]] const std::vector<persist::TagEntry>& update_history();

  store::NodeStore& store_;
  commits::Ledger& ledger_;
  const persist::PrefixStorage& prefix_;
  const persist::PrefixMarkers* markers_;
  persist::ManifestBuilder builder_;  ///< used by no two threads at once: see Waits::wait_until_sealed
  FlushSettings settings_;
  Clock& clock_;
  Log log_;
  persist::PrefixCommitList history_;  ///< the run's commits on the prefix, on rank 0
  std::uint64_t history_version_ = 0;  ///< the ledger's prefix_changes() that it includes
  CommitRemoval removal_;
  std::optional<fs::RateLimiter> pace_;  ///< nothing if unlimited
  bool io_is_chosen_ = false;
  bool has_logged_slow_ = false;
  bool may_have_leftovers_ = true;    ///< partly published or removed commits may exist; equal on all ranks
  std::optional<Id128> to_clean_up_;  ///< the last flushed commit, until clean_up()
};

}  // namespace kedge::pipeline
