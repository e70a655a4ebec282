// How a commit comes back: look, agree, select, order, verify, carry out.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "base/log.hpp"
#include "comm/group.hpp"
#include "commits/ledger.hpp"
#include "commits/run_identity.hpp"
#include "kedge/options.hpp"
#include "kedge/selection.hpp"
#include "recovery/execute_orders.hpp"
#include "recovery/orders.hpp"
#include "recovery/selection.hpp"
#include "recovery/survey.hpp"
#include "redundancy/plan_pieces.hpp"

namespace kedge::recovery {

/// Settings of a recovery, the same on every rank.
struct RecoveryPolicy {
  Verify verify = Verify::all;
  bool durable = false;
  std::uint32_t keep = 1;  ///< commits that stay in the stores (store.keep)
  redundancy::PieceSettings pieces;
  /// With Verify::all: what is opened does not wait for what it does not need (Opened::unread).
  bool defers_reads = false;
};

/// Who reads every byte of what is opened.
enum class Reading : std::uint8_t {
  in_load,     ///< each rank's own container, where it lies in place: whoever loads from it
  in_open,     ///< open, as the policy says
  all_in_open  ///< open, whatever the policy says, and of all that counts: something was found damaged
};

/// Totals over all ranks.
struct RecoveryTotals {
  std::uint64_t moved = 0;  ///< containers
  std::uint64_t rebuilt = 0;
  std::uint64_t fetched = 0;
  std::uint64_t bytes = 0;  ///< moved, rebuilt or fetched
};

/// A commit of which every rank has its container again, sealed and in its own store.
struct Opened {
  CommitHead commit;
  bool persistent = false;
  std::uint64_t total_bytes = 0;
  Recovered mine;  ///< this rank's
  RecoveryTotals totals;
  /// Parity of sets of which nothing was missing, and the other commits that stay, are only known by their headers yet.
  bool unread = false;
  /// Whether containers that were in place are unread, too: nothing may be given up for this commit before they were
  /// read.
  bool is_own_unread = false;
};

/// Recovery of one engine; it remembers which commits failed. Calls must be the same on every rank.
class Recovery {
 public:
  /// All that is referred to must outlive it.
  Recovery(comm::Group group, Storage storage, RecoveryPolicy policy, Log log);

  /// COLLECTIVE. Nothing is to be opened: only the ledger learns what there is, so that nothing is overwritten that is
  /// still needed. A prefix that cannot be read is only logged.
  void survey_only();

  /// COLLECTIVE. Brings back the newest commit of the selection, which must not be a Source, that all ranks can
  /// recover; nothing if the run has none. What counts is every file of the commit that is selected, and of those that
  /// stay beside it: with Verify::all these are read whole first, unless defers_reads, and what is damaged counts as
  /// missing. What a set is
  /// rebuilt from is read and checked by the rebuild. If that, or anything else, fails, all that counts is read, and a
  /// commit that fails twice after that is excluded. With Newer::discard the run's record first says of the newer
  /// commits that they are discarded: a crash after that finds the older one, as asked.
  ///
  /// The ledger then has the survey, without what was discarded; that this commit is open is for the caller to say.
  /// Throws unrecoverable, io (the prefix cannot be read), no_space, timeout, rank_failed.
  ///
  /// Reading::in_load is a hint, which is ignored where something is written over, or discarded, for what is opened
  /// (Opened::is_own_unread).
  [[nodiscard]] std::optional<Opened> open(const Selection& selection, Newer newer, Reading reading = Reading::in_open);

  /// COLLECTIVE, while nothing is under way and the stores were surveyed. Where a rank lacks its container of an output
  /// that is to be flushed, it is moved or rebuilt, as that of a checkpoint that is opened. One that cannot be costs a
  /// warning. Of outputs of one tag that is done for the newest. Throws only what ends the engine.
  void recover_outputs();

  /// COLLECTIVE. The opened commit turned out damaged while it was loaded: the next open reads all that counts first,
  /// and rebuilds it or takes an older commit. The second time it must not be opened again.
  void found_damaged(const CommitHead& commit, const Failure& damage);
  /// Local. The opened commit was loaded intact: its earlier failures do not count any more.
  void found_intact(const Id128& commit_id) { failed_once_.erase(commit_id); }

 private:
  /// How much of the files is read before anything is carried out.
  enum class Depth : std::uint8_t {
    headers,          ///< no more than says what they are
    what_is_opened,   ///< whole: the commit's containers, and what they are rebuilt from, likewise
    what_is_used,     ///< whole: of what counts, all that the recovery will not read and check itself
    all_that_counts,  ///< whole: all of what counts
  };
  /// A plan of what to carry out.
  struct Plan {
    Survey survey;
    Choice choice;
    Orders orders;               ///< for what was chosen
    bool is_own_unread = false;  ///< as Opened's

    [[nodiscard]] const Candidate* chosen() const {
      return choice.chosen ? &survey.candidates[*choice.chosen] : nullptr;
    }
  };

  [[nodiscard]] Plan make_plan(const Selection& selection, Depth depth, Reading reading);
  [[nodiscard]] bool verify_needed_files(const Candidate* chosen, std::span<const store::FileKey> except_own);
  [[nodiscard]] bool verify_selected_files(const Candidate& chosen, const Orders& orders,
                                           std::span<const store::FileKey> except_own);
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

  comm::Group group_;
  Storage storage_;
  RecoveryPolicy policy_;
  Log log_;
  StorageSurvey survey_;
  std::set<std::string> warned_;  ///< of what was skipped
  std::set<Id128> failed_once_;   ///< commits that failed after all that counts was read, or while they were loaded
};

}  // namespace kedge::recovery
