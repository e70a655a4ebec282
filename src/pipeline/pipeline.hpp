// Decides which commit goes to which level, and when; runs the stages that take it there.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "comm/group.hpp"
#include "commits/ledger.hpp"
#include "kedge/error.hpp"
#include "pipeline/protect_stage.hpp"
#include "pipeline/stage.hpp"
#include "store/node_store.hpp"
#include "store/retirement.hpp"

namespace kedge::pipeline {

/// When commits are due. The same on every rank.
struct Schedule {
  std::uint64_t protect_every = 1;  ///< every so many commits; 0: never by itself
  std::uint64_t flush_every = 0;    ///< likewise
  std::uint32_t keep = 1;           ///< commits that the stores keep
  bool flush_at_end = true;         ///< the newest, when the job ends, if any is flushed by itself
};

/// What became of a commit that was submitted. Each failure is the same on every rank; the commit stands without.
struct Submitted {
  std::optional<Failure> not_protected;
  std::optional<Failure> not_persistent;
};

/// The warning about a commit of which the flush failed.
[[nodiscard]] std::string not_flushed(const commits::Ledger& ledger, const CommitHead& commit, const Failure& failure);

/// Superseded commits leave the stores in these calls and nowhere else: what takes a commit to a higher level also
/// retires those that it supersedes. Runs inline: every call returns when its stages have run. All calls are COLLECTIVE
/// and throw what ends communication.
class Pipeline {
 public:
  Pipeline(comm::Group group, store::NodeStore& store, commits::Ledger& ledger, std::unique_ptr<ProtectStage> protect,
           std::unique_ptr<Stage> flush, Schedule schedule, Clock& clock, const Log& log)
      : group_(std::move(group)),
        store_(store),
        ledger_(ledger),
        protect_(std::move(protect)),
        flush_(std::move(flush)),
        schedule_(schedule),
        clock_(clock),
        log_(log) {}

  /// A commit that was just sealed: takes it as far as its turn says. What failed is tried again with a later one.
  [[nodiscard]] Submitted submit(const CommitHead& commit);
  /// A commit that was just opened: makes it as well protected as a fresh one, if commits are protected at all. If it
  /// is not persistent, the next commit is due for the prefix.
  void continue_from(const CommitHead& commit, bool persistent);
  /// Nothing was opened, and the ledger knows what the stores hold: makes room before the first commit.
  void make_room() { retire(); }
  /// Takes a commit to a level now. Throws why it cannot be reached: invalid_argument if the options rule the level
  /// out.
  void require(const commits::Entry& entry, Level level);
  /// The job ends: its newest commit goes to the prefix, if any does. A failure is logged.
  void finish();

 private:
  [[nodiscard]] std::optional<Failure> run(Stage& stage, const CommitHead& commit);
  [[nodiscard]] Protections judge_protection(const CommitHead& commit);
  void protect_again(const CommitHead& commit);
  [[nodiscard]] bool drop_former_copies(const CommitHead& commit);
  void retire() { store::retire_superseded(store_, ledger_, schedule_.keep, log_); }

  comm::Group group_;
  store::NodeStore& store_;
  commits::Ledger& ledger_;
  std::unique_ptr<ProtectStage> protect_;
  std::unique_ptr<Stage> flush_;
  Schedule schedule_;
  Clock& clock_;
  const Log& log_;
  std::uint64_t commits_ = 0;  ///< of this engine: every Nth is protected
  /// Since the last persistent one; after an open of one that is not, as many as make a flush due.
  std::uint64_t unflushed_ = 0;
};

}  // namespace kedge::pipeline
