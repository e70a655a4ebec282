// Commits that are submitted before they are sealed: a worker seals them first; and snapshots that could not be sealed.
#pragma once

#include <atomic>
#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "comm/group.hpp"
#include "commits/ledger.hpp"
#include "kedge/error.hpp"
#include "kedge/types.hpp"
#include "pipeline/background_pause.hpp"
#include "pipeline/execution.hpp"
#include "pipeline/executor.hpp"
#include "pipeline/progress.hpp"
#include "pipeline/stage_costs.hpp"
#include "pipeline/stage_list.hpp"
#include "pipeline/stage_runner.hpp"

namespace kedge::pipeline {

[[nodiscard]] std::string lost_snapshot_warning(const commits::Ledger& ledger, const CommitHead& commit,
                                                const Failure& failure);

/// Losses may be added and found from any thread; the rest is for the application's thread.
class LostSnapshots {
 public:
  struct Lost {
    CommitHead commit;
    Failure failure;  ///< why
  };

  explicit LostSnapshots(const commits::Ledger& ledger) : ledger_(ledger) {}

  /// Adds a loss that is newer than all earlier ones.
  void add_loss(const CommitHead& commit, const Failure& failure);
  /// A newer commit of this tag exists.
  void forget_tag(std::string_view tag);
  /// The loss, if the newest checkpoint of this tag is lost.
  [[nodiscard]] std::optional<Lost> find_loss(std::string_view tag) const;

  void begin_snapshot(const Tag& tag);
  /// The application learned what became of this tag.
  void mark_reported(std::string_view tag) noexcept;
  void mark_all_reported() noexcept { is_reported_ = true; }
  /// The failure if the newest checkpoint is lost and the application has not learned it yet.
  [[nodiscard]] std::optional<Failure> unreported_failure() const;

 private:
  static constexpr std::size_t kLossesMax = 16;  ///< enough for a store that stays full

  [[nodiscard]] std::optional<Lost> newest() const;
  [[nodiscard]] std::optional<Lost> newest_of(std::string_view tag) const;

  const commits::Ledger& ledger_;
  mutable std::mutex mutex_;
  std::deque<Lost> lost_;     ///< newest first
  Tag last_tag_;              ///< tag of the newest snapshot
  bool is_reported_ = false;  ///< the application knows its outcome
};

/// If sealing fails, the snapshot is no commit, and the next commit gets its turns.
class Snapshots {
 public:
  /// `may_exist`: whether this run makes snapshots. The referenced objects must outlive it.
  Snapshots(comm::Group group, commits::Ledger& ledger, StageList& stages, StageRunner& runner,
            const CommitObservers& observers, BackgroundPause& pause, StageTimer& timer, bool may_exist);

  /// Local. Whether a manifest for these regions can be made in the background.
  [[nodiscard]] bool can_prepare(std::span<const format::StoredRegion> regions, const Attributes& attributes);
  /// Whether this run makes snapshots.
  [[nodiscard]] bool may_exist() const noexcept { return may_exist_; }
  /// Local. A snapshot is about to be submitted.
  void begin_snapshot(const CommitHead& commit);
  /// COLLECTIVE, on the execution's group. Seals it and prepares its stages; returns whether it is a commit.
  [[nodiscard]] bool seal_snapshot(Execution& execution, Job& job);
  /// Thread-safe. Whether a snapshot is being sealed or prepared; a worker may then copy from devices.
  [[nodiscard]] bool is_sealing() const noexcept { return is_sealing_; }

  /// Local. A newer commit of this tag was made.
  void forget_tag(std::string_view tag) { lost_.forget_tag(tag); }
  /// Local. The loss, if the newest commit of this tag is lost.
  [[nodiscard]] std::optional<LostSnapshots::Lost> find_lost(std::string_view tag) const {
    return lost_.find_loss(tag);
  }
  /// COLLECTIVE. Throws the reason if the newest commit of this tag is lost.
  void throw_if_lost(std::string_view tag);
  /// COLLECTIVE. Why the newest commit is lost: it was a snapshot that could not be sealed, throw_if_lost() has not
  /// reported it, and it is not ignored. Equal on all ranks.
  [[nodiscard]] std::optional<Failure> unreported_failure() const;
  /// Local. open discards newer commits, so finalize need not report a lost one.
  void ignore_lost() noexcept { lost_.mark_all_reported(); }

 private:
  void drop_snapshot(Execution& execution, const Job& job, const Failure& failure);

  comm::Group group_;
  commits::Ledger& ledger_;
  StageList& stages_;
  StageRunner& runner_;
  const CommitObservers& observers_;
  BackgroundPause& pause_;
  StageTimer& timer_;
  bool may_exist_;
  LostSnapshots lost_;
  std::atomic<bool> is_sealing_ = false;
};

}  // namespace kedge::pipeline
