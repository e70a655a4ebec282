// Recovers a commit: survey, agree, select, plan orders, verify, execute.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/log.hpp"
#include "comm/group.hpp"
#include "commits/ledger.hpp"
#include "commits/run_identity.hpp"
#include "kedge/options.hpp"
#include "kedge/selection.hpp"
#include "recovery/choose_commit.hpp"
#include "recovery/deferred_reads.hpp"
#include "recovery/execute_orders.hpp"
#include "recovery/holding.hpp"
#include "recovery/orders.hpp"
#include "recovery/survey.hpp"
#include "redundancy/plan_stripes.hpp"

namespace kedge::recovery {

/// Settings of a recovery; equal on every rank.
struct RecoveryPolicy {
  Verify verify = Verify::all;
  bool durable = false;
  std::uint32_t keep = 1;  ///< store.keep
  redundancy::PieceSettings pieces;
  /// With Verify::all: open does not verify files that it does not need (Opened::unread).
  bool defers_reads = false;
};

/// Which code verifies the opened commit.
enum class Reading : std::uint8_t {
  in_load,     ///< loads verify containers that were in place
  in_open,     ///< open, as the policy says
  all_in_open  ///< open, completely: something was found damaged
};

/// Totals over all ranks.
struct RecoveryTotals {
  std::uint64_t moved = 0;  ///< moved containers
  std::uint64_t rebuilt = 0;
  std::uint64_t fetched = 0;
  std::uint64_t bytes = 0;      ///< moved, rebuilt and fetched
  std::uint64_t on_prefix = 0;  ///< read there, of a commit of another number of ranks
};

/// A recovered commit: every rank has its sealed container in its own store, or, of a commit that another number of
/// ranks saved, the processes together have all of its containers where they lie.
struct Opened {
  CommitHead commit;
  bool persistent = false;
  std::uint64_t total_bytes = 0;
  Recovered mine;  ///< of this rank
  RecoveryTotals totals;
  /// Other kept commits, and parity of complete sets, were only checked by their headers.
  bool unread = false;
  /// Containers that were in place are unverified, too: nothing may be removed for this commit until they are.
  bool are_containers_unread = false;
  // Of a commit of another number of ranks:
  std::vector<HeldRank> held;            ///< that this process reads
  std::string directory;                 ///< tag directory on the prefix; empty if nothing is read there
  std::vector<std::uint32_t> not_found;  ///< on rank 0: the ranks whose containers no store had, ascending
};

/// Recovery of one engine, which remembers failed commits. All ranks must make the same calls.
class Recovery {
 public:
  /// All that is referred to must outlive it.
  Recovery(comm::Group group, Storage storage, RecoveryPolicy policy, Log log);

  /// COLLECTIVE. For starts that open nothing: fills the ledger, so that no file is overwritten that is still needed. A
  /// prefix that cannot be read is only logged.
  void survey_only();

  /// COLLECTIVE. Recovers the newest selected commit that all ranks can recover; returns nothing if the run has none.
  /// `selection` must not be a Source.
  ///
  /// With Verify::all, the files of the selected commit and of the other commits to
  /// be kept are verified first, except with defers_reads; damaged ones count as missing. Rebuilds verify the files
  /// that they read. If a recovery fails, all these files are verified, and a commit that fails twice after that is
  /// excluded. With Newer::discard, the run's record first lists newer commits as discarded, so that a crash after that
  /// leads to the older one as requested.
  ///
  /// Afterwards the ledger has the survey without discarded commits; the caller
  /// marks the commit as open. Throws unrecoverable, io (the prefix cannot be read), no_space, timeout, rank_failed.
  /// Reading::in_load is only a hint: it is ignored if the recovery overwrites or discards something
  /// (Opened::are_containers_unread).
  [[nodiscard]] std::optional<Opened> open(const Selection& selection, Newer newer, Reading reading = Reading::in_open);

  /// Local. Opens what this process holds of a commit that another number of ranks saved. Throws not_found, io,
  /// corrupt.
  [[nodiscard]] std::vector<Holding> open_holdings(const Opened& opened, unsigned copy_threads) const;

  /// COLLECTIVE, while nothing is under way and the stores were surveyed. Where a rank lacks its container of an output
  /// that is to be flushed, it is moved or rebuilt, as that of a checkpoint that is opened. One that cannot be costs a
  /// warning. Of outputs of one tag that is done for the newest. Throws only what ends the engine.
  void recover_outputs();

  /// COLLECTIVE. The opened commit turned out damaged while it was loaded: the next open reads all that counts first,
  /// and rebuilds it or takes an older commit. The second time it must not be opened again.
  void mark_damaged(const CommitHead& commit, const Failure& damage);
  /// Local. The opened commit was loaded intact, which cancels its earlier failure.
  void mark_intact(const Id128& commit_id) { failed_once_.erase(commit_id); }

 private:
  /// How much is verified before orders are executed.
  enum class Depth : std::uint8_t {
    headers,          ///< only headers
    what_is_opened,   ///< also the selected commit's files that are not deferred
    what_is_used,     ///< also all needed files that the recovery itself does not verify
    all_that_counts,  ///< all needed files
  };
  /// A planned recovery.
  struct Plan {
    Survey survey;
    Choice choice;
    Orders orders;                       ///< for the selected commit
    bool are_containers_unread = false;  ///< see Opened

    [[nodiscard]] const Candidate* chosen() const {
      return choice.chosen ? &survey.candidates[*choice.chosen] : nullptr;
    }
  };

  [[nodiscard]] Plan make_plan(const Selection& selection, Depth depth, Reading reading);
  [[nodiscard]] bool verify_needed_files(const Candidate* chosen, const DeferredReads& later);
  [[nodiscard]] bool verify_selected_files(const Candidate& chosen, const Orders& orders, DeferredReads later);
  [[nodiscard]] std::vector<Tag> incomplete_outputs() const;
  void log_no_match(const Plan& plan, const Selection& selection) const;
  static void refuse_unknown_bound(const Plan& plan, const Selection& selection);
  void log_skipped(const Plan& plan);
  void warn_once(const std::string& line);
  void require_recoverable(const Choice& choice, const Selection& selection);
  [[nodiscard]] std::optional<Recovered> try_to_execute_orders(const Plan& plan, const Candidate& chosen, Depth depth);
  void require_prefix(const Candidate& chosen) const;
  void discard_newer(const Survey& survey, const Candidate& chosen);
  [[nodiscard]] Opened opened(const Plan& plan, Recovered mine, Depth depth) const;
  [[nodiscard]] Opened opened_as_it_lies(const Plan& plan, Depth depth) const;
  [[nodiscard]] std::vector<std::uint32_t> ranks_in_no_store(const Plan& plan) const;

  comm::Group group_;
  Storage storage_;
  RecoveryPolicy policy_;
  Log log_;
  StorageSurvey survey_;
  std::set<std::string> warned_;  ///< warnings about skipped commits
  std::set<Id128> failed_once_;   ///< commits that failed after complete verification, or while loading
};

}  // namespace kedge::recovery
